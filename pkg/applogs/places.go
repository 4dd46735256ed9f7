package applogs

import "context"

// maxStreams is how many logs are followed at the same time; more take turns. A
// kubelet takes an inotify instance for each, and by default root has 128 of them
// on the whole device.
const maxStreams = 64

// places bounds the streams that are open at the same time.
type places struct {
	free  chan struct{}
	queue chan struct{} // as many as wait
}

func newPlaces(n, most int) *places {
	return &places{free: make(chan struct{}, n), queue: make(chan struct{}, most)}
}

func (p *places) enter(ctx context.Context) error {
	select {
	case p.free <- struct{}{}:
		return nil
	default:
	}
	p.queue <- struct{}{}
	defer func() { <-p.queue }()
	select {
	case p.free <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (p *places) leave()       { <-p.free }
func (p *places) wanted() bool { return len(p.queue) > 0 }
