package main

import (
	"context"
	"fmt"
	"time"

	"github.com/Azure/go-amqp"
)

// How long anything that must come may take.
const patience = 20 * time.Second

// A connection with one session, and the few things that all behaviours do with it.
type peer struct {
	connection *amqp.Conn
	session    *amqp.Session
}

func dial(url string) *peer {
	return dialAs(url, "")
}

func dialAs(url, container string) *peer {
	made, err := try(url, container)
	check(err)
	return made
}

func try(url, container string) (*peer, error) {
	ctx, cancel := soon()
	defer cancel()
	connection, err := amqp.Dial(ctx, url, &amqp.ConnOptions{ContainerID: container})
	if err != nil {
		return nil, err
	}
	session, err := connection.NewSession(ctx, nil)
	return &peer{connection, session}, err
}

func (p *peer) close() {
	check(p.connection.Close())
}

func (p *peer) sender(address string, options *amqp.SenderOptions) *amqp.Sender {
	ctx, cancel := soon()
	defer cancel()
	sender, err := p.session.NewSender(ctx, address, options)
	check(err)
	return sender
}

// Send durable texts, each of which the broker has accepted when this returns.
func (p *peer) send(address string, texts ...string) {
	sender := p.sender(address, nil)
	for _, text := range texts {
		put(sender, message(text))
	}
	end(sender)
}

// Send durable texts, each of a colour.
func (p *peer) sendColoured(address, colour string, texts ...string) {
	sender := p.sender(address, nil)
	for _, text := range texts {
		sent := message(text)
		sent.ApplicationProperties = map[string]any{"colour": colour}
		put(sender, sent)
	}
	end(sender)
}

// Without options it has credit for one message after the other.
func (p *peer) receiver(address string, options *amqp.ReceiverOptions) *amqp.Receiver {
	ctx, cancel := soon()
	defer cancel()
	receiver, err := p.session.NewReceiver(ctx, address, options)
	check(err)
	return receiver
}

func message(text string) *amqp.Message {
	return &amqp.Message{Header: &amqp.MessageHeader{Durable: true, Priority: 4}, Value: text}
}

// Send a message, which must be accepted.
func put(sender *amqp.Sender, sent *amqp.Message) {
	ctx, cancel := soon()
	defer cancel()
	receipt, err := sender.SendWithReceipt(ctx, sent, nil)
	check(err)
	outcome, err := receipt.Wait(ctx)
	check(err)
	if _, isAccepted := outcome.(*amqp.StateAccepted); !isAccepted {
		panic(fmt.Sprintf("the outcome of a message is %T", outcome))
	}
}

// Take the next message, which must come.
func next(receiver *amqp.Receiver) *amqp.Message {
	ctx, cancel := soon()
	defer cancel()
	got, err := receiver.Receive(ctx, nil)
	check(err)
	return got
}

func accept(receiver *amqp.Receiver, got *amqp.Message) {
	ctx, cancel := soon()
	defer cancel()
	check(receiver.AcceptMessage(ctx, got))
}

// Take and accept so many messages; returns their texts.
func take(receiver *amqp.Receiver, count int) []string {
	texts := []string{}
	for len(texts) < count {
		got := next(receiver)
		texts = append(texts, got.Value.(string))
		accept(receiver, got)
	}
	return texts
}

// Credit that the driver gives by hand.
func manual() *amqp.ReceiverOptions {
	return &amqp.ReceiverOptions{Credit: -1}
}

// More credit than there ever are messages.
func plenty() *amqp.ReceiverOptions {
	return &amqp.ReceiverOptions{Credit: 100}
}

// The text of the message that a driver sends last: what came before it is all that there was.
const last = "the last one"

// Take and accept what comes before the last message; returns the texts.
func rest(receiver *amqp.Receiver) []string {
	texts := []string{}
	for {
		text := take(receiver, 1)[0]
		if text == last {
			return texts
		}
		texts = append(texts, text)
	}
}

// Take what a queue has, on a connection of its own.
func left(url, address string) []string {
	p := dial(url)
	defer p.close()
	p.send(address, last)
	return rest(p.receiver(address, plenty()))
}

type link interface {
	Close(ctx context.Context) error
}

func end(ended link) {
	ctx, cancel := soon()
	defer cancel()
	check(ended.Close(ctx))
}

func soon() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), patience)
}
