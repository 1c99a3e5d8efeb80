package main

import (
	"fmt"
	"time"

	"github.com/Azure/go-amqp"
)

func credit(url, name string) string {
	p := dial(url)
	defer p.close()
	texts := []string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}
	p.send(name, texts...)
	receiver := p.receiver(name, manual())
	check(receiver.IssueCredit(3))
	same(texts[:3], take(receiver, 3), "what credit for three brings")
	// Another receiver takes the rest: nothing was on its way beyond the credit.
	same(texts[3:], left(url, name), "what is left")
	p.send(name, "later")
	check(receiver.IssueCredit(1))
	same([]string{"later"}, take(receiver, 1), "what more credit brings")
	return ""
}

func drain(url, name string) string {
	p := dial(url)
	defer p.close()
	receiver := p.receiver(name, manual())
	giveBack(receiver)
	p.send(name, "a", "b", "c")
	check(receiver.IssueCredit(5))
	same([]string{"a", "b", "c"}, take(receiver, 3), "what is there")
	giveBack(receiver)
	p.send(name, "d")
	same([]string{"d"}, left(url, name), "what waits for others after the drain")
	p.send(name, "e")
	check(receiver.IssueCredit(1))
	same([]string{"e"}, take(receiver, 1), "what comes after a drain")
	return "go-amqp drains with a credit of 0: the broker returns the remaining credit at once"
}

func giveBack(receiver *amqp.Receiver) {
	ctx, cancel := soon()
	defer cancel()
	check(receiver.DrainCredit(ctx, nil))
	if receiver.Prefetched() != nil {
		panic("a message came while the credit was given back")
	}
}

func reconnect(url, name string) string {
	p := dial(url)
	sent := []string{}
	for number := range 50 {
		sent = append(sent, fmt.Sprint("message ", number))
	}
	p.send(name, sent...)
	restart()
	<-p.connection.Done()
	p = again(url)
	p.send(name, "and on")
	p.close()
	same(append(sent, "and on"), left(url, name), "what comes")
	return "the application connects again: go-amqp does not reconnect"
}

// Dial until the broker is there.
func again(url string) *peer {
	for until := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		made, err := try(url, "")
		if err == nil {
			return made
		}
		if time.Now().After(until) {
			panic(err)
		}
	}
}
