package cloud

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pkg/edge/object"
	"github.com/zedkube/zedkube/pkg/edge/settings"
)

// applying is an API server that refuses to apply one object once.
type applying struct {
	Kube
	seen    map[object.Ref]object.Object
	refuses object.Ref
	applied []object.Ref
}

func (k *applying) Seen() (map[object.Ref]object.Object, bool) { return k.seen, true }

func (k *applying) Apply(_ context.Context, r object.Ref, o object.Object, _ bool) (object.Object, error) {
	if r == k.refuses {
		k.refuses = object.Ref{}
		return nil, errors.New("the API server does not answer")
	}
	is, err := object.Plain(o)
	if err != nil {
		return nil, err
	}
	k.applied = append(k.applied, r)
	now := object.Object(is.(m))
	now["metadata"].(m)["resourceVersion"] = fmt.Sprint("applied ", len(k.applied))
	k.seen[r] = now
	return now, nil
}

func (k *applying) Create(_ context.Context, r object.Ref, o object.Object) error {
	k.seen[r] = o
	return nil
}

func TestCloudcoreIsNotRestartedBeforeItsFileIsWritten(t *testing.T) {
	w := whole(t)
	w.stream(time.Now().Add(-time.Hour), time.Now().Add(365*24*time.Hour)) // a step is by the present time
	w.settle()
	log := logrus.New()
	log.SetOutput(io.Discard)
	k := &applying{seen: w.seen}
	c := &Component{Log: log, Pulse: &loop.Pulse{}, Kube: k}
	if err := c.Step(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.set(func(s *settings.Settings) { s.NodeLimit = 200 })
	k.refuses, k.applied = refConfig, nil
	if err := c.Step(t.Context()); err == nil || len(k.applied) > 0 {
		t.Errorf("its file is not written, and these are: %v; %v", k.applied, err)
	}
	if err := c.Step(t.Context()); err != nil || !slices.Equal(k.applied, []object.Ref{refConfig, refDeployment}) {
		t.Errorf("once it can be, these are: %v; %v", k.applied, err)
	}
}
