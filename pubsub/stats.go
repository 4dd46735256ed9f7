package pubsub

import "sync/atomic"

// Stats is what became of one topic since the bus was made.
type Stats struct {
	Topic      string // agent/Topic
	Subscribed bool   // we read it; otherwise we publish it
	Clients    int    // of a publication: subscribers that are connected now
	Sent       uint64 // of a publication: changes sent to its subscribers, or that would have been if there were any
	Messages   uint64 // updates and deletes: sent to subscribers, or received from the publisher
	Refused    uint64 // Publish and Unpublish calls that failed, or bad values that were reported
	Dropped    uint64 // of a publication: subscribers hung up on, for they accepted no packet for five minutes
}

// counts are the counters behind Stats.
type counts struct{ sent, messages, refused, dropped atomic.Uint64 }

func (c *counts) stats(topic string, subscribed bool, clients int) Stats {
	return Stats{
		Topic: topic, Subscribed: subscribed, Clients: clients,
		Sent: c.sent.Load(), Messages: c.messages.Load(), Refused: c.refused.Load(), Dropped: c.dropped.Load(),
	}
}

// Stats returns one entry per publication and then one per subscription, each
// in the order in which they were added.
func (b *Bus) Stats() []Stats {
	var all []Stats
	for _, m := range b.pubs {
		all = append(all, m.stats())
	}
	for _, m := range b.subs {
		all = append(all, m.stats())
	}
	return all
}
