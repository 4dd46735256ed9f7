package access

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// overdue is how long after the time that it was asked for a watch is ended here:
// one that nobody ends may be forgotten on the way, and then says nothing for ever.
const overdue = 30 * time.Second

// Overdue opens a watch that ends by itself when it is overdue, as it does where the server ends it: what follows is
// watched from the last version on.
func Overdue(ctx context.Context, o metav1.ListOptions, open cache.WatchFuncWithContext) (watch.Interface, error) {
	if o.TimeoutSeconds == nil {
		return open(ctx, o)
	}
	bounded, cancel := context.WithTimeout(ctx, time.Duration(*o.TimeoutSeconds)*time.Second+overdue)
	w, err := open(bounded, o)
	if err != nil {
		cancel()
		return nil, err
	}
	return boundedWatch{w, cancel}, nil
}

// boundedWatch frees the bound of a watch that is stopped.
type boundedWatch struct {
	watch.Interface
	cancel context.CancelFunc
}

func (w boundedWatch) Stop() {
	w.Interface.Stop()
	w.cancel()
}
