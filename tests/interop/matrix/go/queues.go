package main

import (
	"bytes"
	"fmt"
	"math"

	"github.com/Azure/go-amqp"
)

const count = 10

func send(url, name string) string {
	p := dial(url)
	defer p.close()
	for number := range count {
		p.send(name, fmt.Sprint("message ", number))
	}
	return ""
}

func receive(url, name string) string {
	p := dial(url)
	defer p.close()
	sender := p.sender(name, nil)
	subject := "subject"
	for number := range count {
		sent := message(fmt.Sprint("message ", number))
		sent.Header.Priority = 7
		sent.Properties = &amqp.MessageProperties{
			MessageID: fmt.Sprint("id ", number), CorrelationID: uint64(number), Subject: &subject,
		}
		sent.ApplicationProperties = map[string]any{"number": int32(number)}
		put(sender, sent)
	}
	receiver := p.receiver(name, &amqp.ReceiverOptions{Credit: count})
	for number := range count {
		got := next(receiver)
		same(fmt.Sprint("message ", number), got.Value, "body")
		same(fmt.Sprint("id ", number), got.Properties.MessageID, "message-id")
		same(uint64(number), got.Properties.CorrelationID, "correlation-id")
		same(subject, *got.Properties.Subject, "subject")
		same(int32(number), got.ApplicationProperties["number"], "application property")
		same(uint8(7), got.Header.Priority, "priority")
		accept(receiver, got)
	}
	end(receiver)
	same([]string{}, left(url, name), "what is left")
	return ""
}

func accepted(url, name string) string {
	p := dial(url)
	p.send(name, "a")
	take(p.receiver(name, nil), 1)
	p.close()
	same([]string{}, left(url, name), "what is left")
	return ""
}

func rejected(url, name string) string {
	p := dial(url)
	p.send(name, "a", "b")
	receiver := p.receiver(name, nil)
	ctx, cancel := soon()
	defer cancel()
	why := &amqp.Error{Condition: "app:bad", Description: "not this one"}
	check(receiver.RejectMessage(ctx, next(receiver), why))
	same("b", next(receiver).Value, "what comes next")
	p.close()
	same([]string{"b"}, left(url, name), "what is left")
	return ""
}

func released(url, name string) string {
	again := endedAndTakenAgain(url, name, func(receiver *amqp.Receiver, got *amqp.Message) {
		ctx, cancel := soon()
		defer cancel()
		check(receiver.ReleaseMessage(ctx, got))
	})
	same(uint32(0), again.Header.DeliveryCount, "delivery-count")
	return ""
}

func modified(url, name string) string {
	again := endedAndTakenAgain(url, name, func(receiver *amqp.Receiver, got *amqp.Message) {
		ctx, cancel := soon()
		defer cancel()
		why := amqp.Annotations{"x-opt-why": "it failed"}
		check(receiver.ModifyMessage(ctx, got, &amqp.ModifyMessageOptions{DeliveryFailed: true, Annotations: why}))
	})
	same(uint32(1), again.Header.DeliveryCount, "delivery-count")
	same("it failed", again.Annotations["x-opt-why"], "the annotation that came with it")
	return ""
}

func endedAndTakenAgain(url, name string, end func(*amqp.Receiver, *amqp.Message)) *amqp.Message {
	p := dial(url)
	defer p.close()
	p.send(name, "a")
	receiver := p.receiver(name, nil)
	end(receiver, next(receiver))
	again := next(receiver)
	accept(receiver, again)
	return again
}

func lostLink(url, name string) string {
	p := dial(url)
	p.send(name, "a")
	next(p.receiver(name, nil))
	p.close()
	other := dial(url)
	defer other.close()
	receiver := other.receiver(name, nil)
	again := next(receiver)
	same(uint32(1), again.Header.DeliveryCount, "delivery-count")
	accept(receiver, again)
	return ""
}

func browse(url, name string) string {
	p := dial(url)
	defer p.close()
	p.send(name, "a", "b", "c")
	options := plenty()
	options.SourceDistributionMode = amqp.SourceDistributionModeCopy
	same([]string{"a", "b", "c"}, take(p.receiver(name, options), 3), "what is shown")
	same([]string{"a", "b", "c"}, left(url, name), "what is left")
	return ""
}

func selector(url, name string) string {
	p := dial(url)
	defer p.close()
	p.sendColoured(name, "blue", "sky", "sea")
	p.sendColoured(name, "red", "rose", "brick", last)
	options := plenty()
	options.Filters = []amqp.LinkFilter{amqp.NewSelectorFilter("colour = 'red' AND JMSPriority < 9")}
	same([]string{"rose", "brick"}, rest(p.receiver(name, options)), "what is selected")
	same([]string{"sky", "sea"}, left(url, name), "what is left")
	return ""
}

func temporaryQueue(url, name string) string {
	p, other := dial(url), dial(url)
	defer p.close()
	defer other.close()
	receiver := p.receiver("", &amqp.ReceiverOptions{DynamicAddress: true})
	if receiver.Address() == "" {
		panic("the dynamic source has no address")
	}
	other.send(receiver.Address(), "answer")
	same([]string{"answer"}, take(receiver, 1), "what comes")
	return ""
}

func anonymousRelay(url, name string) string {
	p := dial(url)
	defer p.close()
	addresses := []string{name + ".one", name + ".two"}
	for _, address := range addresses {
		end(p.sender(address, nil))
	}
	sender := p.sender("", nil)
	for _, address := range addresses {
		sent := message(address)
		sent.Properties = &amqp.MessageProperties{To: &address}
		put(sender, sent)
	}
	for _, address := range addresses {
		same([]string{address}, left(url, address), "what the queue has")
	}
	return ""
}

func largeMessage(url, name string) string {
	p := dial(url)
	defer p.close()
	body := make([]byte, 3<<20)
	for place := range body {
		body[place] = byte(place * 31 >> 3)
	}
	sent := amqp.NewMessage(body)
	sent.Header = &amqp.MessageHeader{Durable: true}
	put(p.sender(name, nil), sent)
	receiver := p.receiver(name, nil)
	got := next(receiver)
	same(true, bytes.Equal(body, got.GetData()), "the same bytes")
	accept(receiver, got)
	return ""
}

func groups(url, name string) string {
	p := dial(url)
	defer p.close()
	one, two := p.receiver(name, plenty()), p.receiver(name, plenty())
	sender := p.sender(name, nil)
	for index, text := range []string{"a1", "b1", "c1", "a2", "b2", "c2", "a3", "a4"} {
		group, sequence := text[:1], uint32(index)
		if text == "a3" {
			sequence = math.MaxUint32
		}
		sent := message(text)
		sent.Properties = &amqp.MessageProperties{GroupID: &group, GroupSequence: &sequence}
		put(sender, sent)
	}
	same([]string{"a1", "c1", "a2", "c2", "a3"}, take(one, 5), "what the first gets")
	same([]string{"b1", "b2", "a4"}, take(two, 3), "what the second gets")
	return ""
}
