package listwatch

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// An overloaded server may list at once and take a second to refuse the watch.
func TestAListWhoseWatchIsRefusedLateIsNoSuccess(t *testing.T) {
	for name, c := range map[string]struct {
		refused bool
		success bool
	}{
		"the watch is accepted late": {false, true},
		"the watch is refused late":  {true, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				log := logrus.New()
				log.SetOutput(t.Output())
				backoff := NewSharedBackoff(LastGap)
				_, first := backoff.take(0)
				table := &Table{
					Name: "nodes", Log: log, Liveness: access.NewLiveness(ctx, log, func(time.Time, string) {}), Backoff: backoff,
					Status: &Status{Log: log, Table: &pubsub.Table[types.TableStatus]{}, Name: "nodes"},
				}
				lw := &cache.ListWatch{
					ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
						return &corev1.NodeList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}, nil
					},
					WatchFuncWithContext: func(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
						if o.SendInitialEvents != nil {
							return nil, apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Node").GroupKind(), "", nil)
						}
						time.Sleep(provenAfter + 200*time.Millisecond)
						if c.refused {
							return nil, apierrors.NewServiceUnavailable("overloaded")
						}
						return watch.NewFake(), nil
					},
				}
				done := make(chan struct{})
				go func() {
					defer close(done)
					table.Run(ctx, lw, access.RowsOf(&pubsub.Table[string]{}, func(*corev1.Node) string { return "" }, access.Name[*corev1.Node]))
				}()
				time.Sleep(10 * time.Second)
				select {
				case <-first:
					if !c.success {
						t.Error("who waits was let go for a list that could not be watched on")
					}
				default:
					if c.success {
						t.Error("a list that is watched on is no success")
					}
				}
				cancel()
				<-done
			})
		})
	}
}

// mute is a watch that says nothing until its request ends.
type mute struct{ ctx context.Context }

func (m mute) Decode() (watch.EventType, runtime.Object, error) {
	<-m.ctx.Done()
	return "", nil, m.ctx.Err()
}

func (m mute) Close() {}

// What lies between may have forgotten a watch whose connection goes on.
func TestAWatchThatIsNotEndedInTimeIsTakenUpAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		log := logrus.New()
		log.SetOutput(t.Output())
		table := &Table{
			Name: "nodes", Log: log, Liveness: access.NewLiveness(ctx, log, func(time.Time, string) {}), Backoff: NewSharedBackoff(LastGap),
			Status: &Status{Log: log, Table: &pubsub.Table[types.TableStatus]{}, Name: "nodes"},
		}
		lists, watches := 0, 0
		lw := &cache.ListWatch{
			ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
				lists++
				return &corev1.NodeList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}, nil
			},
			WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				if o.SendInitialEvents != nil {
					return nil, apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Node").GroupKind(), "", nil)
				}
				watches++
				return watch.NewStreamWatcher(mute{ctx}, apierrors.NewClientErrorReporter(0, "", "")), nil
			},
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			table.Run(ctx, lw, access.RowsOf(&pubsub.Table[string]{}, func(*corev1.Node) string { return "" }, access.Name[*corev1.Node]))
		}()
		time.Sleep(10*time.Minute + 45*time.Second) // a Reflector asks for 5 to 10 min
		synctest.Wait()
		if lists != 1 || watches != 2 {
			t.Errorf("there were %d lists and %d watches", lists, watches)
		}
		cancel()
		<-done
	})
}
