// Command driver does what it is asked for with go-amqp, and says one line of JSON a behaviour.
//
//	driver URL BEHAVIOUR...
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
)

// A behaviour panics where something is not as it must be, and returns how it was done, or nothing.
type behaviour func(url, name string) string

var known = map[string]behaviour{
	"send":                 send,
	"receive":              receive,
	"accepted":             accepted,
	"rejected":             rejected,
	"released":             released,
	"modified":             modified,
	"lost-link":            lostLink,
	"browse":               browse,
	"selector":             selector,
	"temporary-queue":      temporaryQueue,
	"temporary-topic":      temporaryTopic,
	"topic":                topic,
	"durable-subscription": durableSubscription,
	"shared-subscription":  sharedSubscription,
	"anonymous-relay":      anonymousRelay,
	"credit":               credit,
	"drain":                drain,
	"groups":               groups,
	"large-message":        largeMessage,
	"priority":             priority,
	"expiry":               expiry,
	"delivery-delay":       deliveryDelay,
	"reconnect":            reconnect,
	"default-messages":     defaultMessages,
}

var notOffered = map[string]string{
	"transaction": "no link to a coordinator",
}

func main() {
	for _, name := range os.Args[2:] {
		show(os.Args[1], name)
	}
}

func show(url, name string) {
	defer func() {
		if wrong := recover(); wrong != nil {
			say(name, "failed", fmt.Sprint(wrong))
		}
	}()
	if why, isMissing := notOffered[name]; isMissing {
		say(name, "not offered", why)
		return
	}
	do, isKnown := known[name]
	if !isKnown {
		panic("the driver does not know it")
	}
	say(name, "passed", do(url, name))
}

func say(name, verdict, detail string) {
	line, _ := json.Marshal(map[string]string{"behaviour": name, "verdict": verdict, "detail": detail})
	fmt.Println(string(line))
}

// Have the broker killed and started again; returns when it is back.
func restart() {
	fmt.Println("restart")
	_, err := bufio.NewReader(os.Stdin).ReadString('\n')
	check(err)
}

// Hold two values to be the same.
func same(expected, found any, what string) {
	if !reflect.DeepEqual(expected, found) {
		panic(fmt.Sprintf("%s: expected %v, found %v", what, expected, found))
	}
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
