// Package pubsub stands in for EVE's: subscriptions whose changes a test makes.
package pubsub

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"
)

// SubscriptionOptions are those that the patch sets.
type SubscriptionOptions struct {
	AgentName, MyAgentName string
	TopicImpl              interface{}
	Activate               bool
	Ctx                    interface{}
	CreateHandler          SubCreateHandler
	ModifyHandler          SubModifyHandler
	WarningTime, ErrorTime time.Duration
}

type (
	SubCreateHandler func(ctx interface{}, key string, status interface{})
	SubModifyHandler func(ctx interface{}, key string, status, old interface{})
)

// Change is what became of one key; nil for deleted.
type Change struct {
	Key   string
	Value interface{}
}

type Subscription interface {
	Get(key string) (interface{}, error)
	MsgChan() <-chan Change
	ProcessChange(Change)
}

// PubSub has the subscriptions by agent and topic.
type PubSub struct{ Subs map[string]*Sub }

func (p *PubSub) NewSubscription(o SubscriptionOptions) (Subscription, error) {
	if !o.Activate {
		return nil, errors.New("it is not activated")
	}
	s := &Sub{options: o, rows: map[string]interface{}{}, changes: make(chan Change), Done: make(chan bool)}
	p.Subs[o.AgentName+"/"+reflect.TypeOf(o.TopicImpl).Name()] = s
	return s, nil
}

type Sub struct {
	options SubscriptionOptions
	rows    map[string]interface{}
	changes chan Change
	Done    chan bool
}

// Deliver brings a value of JSON, "null" for deleted; Done says that it was processed.
func (s *Sub) Deliver(key string, raw json.RawMessage) error {
	c := Change{Key: key}
	if string(raw) != "null" {
		v := reflect.New(reflect.TypeOf(s.options.TopicImpl))
		if err := json.Unmarshal(raw, v.Interface()); err != nil {
			return err
		}
		c.Value = v.Elem().Interface()
	}
	go func() { s.changes <- c }()
	return nil
}

func (s *Sub) Get(key string) (interface{}, error) {
	if v, ok := s.rows[key]; ok {
		return v, nil
	}
	return nil, fmt.Errorf("%s not found", key)
}

func (s *Sub) MsgChan() <-chan Change { return s.changes }

func (s *Sub) ProcessChange(c Change) {
	old, had := s.rows[c.Key]
	switch {
	case c.Value == nil:
		delete(s.rows, c.Key)
	case had && s.options.ModifyHandler != nil:
		s.rows[c.Key] = c.Value
		s.options.ModifyHandler(s.options.Ctx, c.Key, c.Value, old)
	case !had && s.options.CreateHandler != nil:
		s.rows[c.Key] = c.Value
		s.options.CreateHandler(s.options.Ctx, c.Key, c.Value)
	default:
		s.rows[c.Key] = c.Value
	}
	s.Done <- true
}
