package main

import (
	"fmt"

	"github.com/Azure/go-amqp"
)

// Send messages with the defaults of go-amqp, those of a kind to the queue of its name.
func defaultMessages(url, _ string) string {
	p := dial(url)
	defer p.close()
	kinds := map[string]func(number int) *amqp.Message{
		"text":   func(number int) *amqp.Message { return &amqp.Message{Value: fmt.Sprint("text ", number)} },
		"binary": func(number int) *amqp.Message { return amqp.NewMessage(fmt.Append(nil, "binary ", number)) },
		"durable-text": func(number int) *amqp.Message {
			return message(fmt.Sprint("text ", number))
		},
		"durable-binary": func(number int) *amqp.Message {
			sent := amqp.NewMessage(fmt.Append(nil, "binary ", number))
			sent.Header = &amqp.MessageHeader{Durable: true, Priority: 4}
			return sent
		},
		"id-text": func(number int) *amqp.Message {
			sent := message(fmt.Sprint("text ", number))
			sent.Properties = &amqp.MessageProperties{MessageID: fmt.Sprint("id ", number)}
			return sent
		},
	}
	for kind, made := range kinds {
		sender := p.sender(kind, nil)
		for number := range 3 {
			put(sender, made(number))
		}
		end(sender)
	}
	return ""
}
