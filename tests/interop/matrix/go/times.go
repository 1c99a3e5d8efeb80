package main

import (
	"fmt"
	"time"

	"github.com/Azure/go-amqp"
)

const (
	levels = 10
	short  = 300 * time.Millisecond
	delay  = time.Second
)

func priority(url, name string) string {
	p := dial(url)
	defer p.close()
	sender := p.sender(name, nil)
	expected := make([]string, levels)
	for level := range levels {
		text := fmt.Sprint("level ", level)
		sent := message(text)
		sent.Header.Priority = uint8(level)
		put(sender, sent)
		expected[levels-1-level] = text
	}
	same(expected, take(p.receiver(name, plenty()), levels), "the order")
	return ""
}

func expiry(url, name string) string {
	p := dial(url)
	defer p.close()
	sent := message("short")
	sent.Header.TTL = short
	put(p.sender(name, nil), sent)
	p.send(name, "long")
	time.Sleep(2 * short)
	same([]string{"long"}, left(url, name), "what is left")
	return ""
}

func deliveryDelay(url, name string) string {
	p := dial(url)
	defer p.close()
	receiver := p.receiver(name, plenty())
	began := time.Now()
	sent := message("late")
	sent.Annotations = amqp.Annotations{"x-opt-delivery-delay": delay.Milliseconds()}
	put(p.sender(name, nil), sent)
	p.send(name, "at once")
	same([]string{"at once", "late"}, take(receiver, 2), "what comes")
	same(true, time.Since(began) >= delay, "it comes after its delay")
	return "by x-opt-delivery-delay"
}
