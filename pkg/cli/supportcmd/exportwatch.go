package supportcmd

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/zedkube/zedkube/pkg/base/filewatch"
	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/report/evereport"
	"github.com/zedkube/zedkube/pubsub"
)

// exportEvery is for what no file of a fixed name says: applications, and an agent that has ended.
const exportEvery = 5 * time.Second

// ages are how long ago something was, which is not news.
var ages = regexp.MustCompile(`,? \(?[0-9][0-9a-z ]* ago\)?`)

// exportWatch prints messages when they change.
type exportWatch struct {
	paths  device.Paths
	names  []string
	binary bool
	form   *terminal.Outputs
	said   io.Writer
	last   map[string]lastExported // by message
}

type lastExported struct {
	sum   [sha256.Size]byte // of the message that was printed
	wrong string            // what was said of it; "" for nothing
}

func (w *exportWatch) run(ctx context.Context, out terminal.Terminal, said io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	var waiting sync.WaitGroup
	defer waiting.Wait()
	defer cancel()
	wake := make(chan struct{}, 1)
	if notify, err := filewatch.New(); err == nil { // where the kernel has none left, files are read now and then
		files := []string{w.paths.PersistentFile("zedagent", "KubeClusterUpdateStatus")}
		for _, topic := range []string{"KubeClusterInfo", "KubeReportHealth", "KubeClusterMetrics", "ClusterNodeStatus"} {
			files = append(files, w.paths.TopicFile(device.Self, topic))
		}
		waiting.Go(func() { _ = notify.Run(ctx, func() { pubsub.Ring(wake) }, files...) })
	}
	w.said = terminal.Until(ctx, said)
	return w.form.Follow(ctx, out, terminal.Watch{Look: w.look, Every: exportEvery, Wake: wake, Events: true})
}

// look is what has changed. Of what cannot be read the last one that could be stays, and
// nothing is printed while it is not known whose messages they are.
func (w *exportWatch) look(ctx context.Context) (v terminal.View) {
	e := newExporter(w.paths, time.Now())
	e.watch = true
	all, err := e.all(ctx, w.names)
	if err != nil {
		return v // interrupted
	}
	next := map[string]lastExported{} // without applications that are gone
	for _, x := range all {
		if len(e.doubts) > 0 {
			x.message = nil
		}
		was := w.last[x.name]
		if x.inOrder { // it is gone, and is news when it comes again
			was.sum = [sha256.Size]byte{}
		}
		now := lastExported{was.sum, ages.ReplaceAllString(strings.Join(x.doubts, "\n")+x.missing, "")}
		if now.wrong != was.wrong {
			if x.missing != "" || now.wrong == "" {
				x.doubts = append(x.doubts, cmp.Or(x.missing, "nothing is wrong any more"))
			}
			for _, text := range x.doubts {
				fmt.Fprintf(w.said, "%s: %s\n", x.name, terminal.Clean(text))
			}
		}
		if x.message != nil {
			now.sum = sha256.Sum256(evereport.Steady(x.message))
		}
		if now.sum != was.sum {
			raw, err := encode(x, w.binary, w.form)
			if err != nil {
				return terminal.View{Ended: true, Err: terminal.ExitWith(terminal.ExitUsage, err)}
			}
			v.Events = append(v.Events, terminal.Event{Raw: raw})
		}
		next[x.name] = now
	}
	w.last = next
	return v
}
