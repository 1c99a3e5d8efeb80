package main

import (
	"fmt"
	"slices"

	"github.com/Azure/go-amqp"
)

const topics = "/topics/"

func topic(url, name string) string {
	p := dial(url)
	defer p.close()
	one, two := p.receiver(topics+name, plenty()), p.receiver(topics+name, plenty())
	p.send(topics+name, "news", last)
	same([]string{"news"}, rest(one), "what the first gets")
	same([]string{"news"}, rest(two), "what the second gets")
	return ""
}

func temporaryTopic(url, name string) string {
	p, other := dial(url), dial(url)
	defer p.close()
	defer other.close()
	made := p.sender("", &amqp.SenderOptions{DynamicAddress: true, TargetCapabilities: []string{"temporary-topic"}})
	one, two := p.receiver(made.Address(), plenty()), p.receiver(made.Address(), plenty())
	other.send(made.Address(), "news", last)
	same([]string{"news"}, rest(one), "what the first gets")
	same([]string{"news"}, rest(two), "what the second gets")
	return "by a dynamic target with the capability temporary-topic"
}

func durableSubscription(url, name string) string {
	sender := dial(url)
	defer sender.close()
	p := dialAs(url, name)
	p.receiver(topics+name, durable())
	p.close()
	sender.sendColoured(topics+name, "red", "rose", "brick", last)

	p = dialAs(url, name)
	again := p.receiver(topics+name, durable())
	same([]string{"rose", "brick"}, rest(again), "what has waited")
	sender.sendColoured(topics+name, "red", "left behind")
	end(again)
	fresh := p.receiver(topics+name, durable())
	sender.sendColoured(topics+name, "red", last)
	same([]string{}, rest(fresh), "what an ended subscription has kept")
	end(fresh)
	p.close()
	return "with a selector; closing the connection leaves it, closing the link ends it"
}

func durable() *amqp.ReceiverOptions {
	options := plenty()
	options.Name = "mine"
	options.SourceDurability = amqp.DurabilityUnsettledState
	options.SourceExpiryPolicy = amqp.ExpiryPolicyNever
	options.Filters = []amqp.LinkFilter{amqp.NewSelectorFilter("colour = 'red'")}
	return options
}

func sharedSubscription(url, name string) string {
	for _, isDurable := range []bool{false, true} {
		shareOne(url, fmt.Sprint(name, ".", isDurable), isDurable)
	}
	return "volatile and durable, by the capabilities shared and global"
}

func shareOne(url, name string, isDurable bool) {
	first, second := dial(url), dial(url)
	defer first.close()
	defer second.close()
	one, two := first.receiver(topics+name, shared(isDurable)), second.receiver(topics+name, shared(isDurable))
	sent := []string{}
	for number := range count {
		sent = append(sent, fmt.Sprint("message ", number))
	}
	check(one.IssueCredit(count / 2))
	check(two.IssueCredit(count / 2))
	first.send(topics+name, sent...)
	got := append(take(one, count/2), take(two, count/2)...)
	slices.Sort(got)
	same(sent, got, "what both have, each message once")
	end(one)
	end(two)
}

func shared(isDurable bool) *amqp.ReceiverOptions {
	options := manual()
	options.Name = "ours"
	options.SourceCapabilities = []string{"topic", "shared", "global"}
	if isDurable {
		options.SourceDurability = amqp.DurabilityUnsettledState
		options.SourceExpiryPolicy = amqp.ExpiryPolicyNever
	}
	return options
}
