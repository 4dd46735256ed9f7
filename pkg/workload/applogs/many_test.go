package applogs

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zedkube/zedkube/test/logjudge"
	"github.com/zedkube/zedkube/types"
)

// crowd is a node with many containers, of which each writes a line a second.
type crowd struct {
	*stage
	names []string
	wrote int
	born  map[string]time.Time // of lines that have not come yet
	slow  time.Duration        // what the slowest line took
}

func newCrowd(t *testing.T, containers int) *crowd {
	c := &crowd{born: map[string]time.Time{}}
	for i := range containers {
		c.names = append(c.names, fmt.Sprintf("c%03d", i))
	}
	c.stage = newStage(t, c.names...)
	return c
}

// write writes for some seconds, and looks each second how old is what has not
// come.
func (c *crowd) write(seconds int) {
	for range seconds {
		c.wrote++
		for _, name := range c.names {
			c.kubelet.write(name, logjudge.Line(name, c.wrote, ""))
			c.born[fmt.Sprint(name, c.wrote)] = time.Now()
		}
		c.wait(time.Second)
	}
}

func (c *crowd) wait(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
	for _, name := range c.names {
		for n := c.wrote; n > 0; n-- {
			born, waits := c.born[fmt.Sprint(name, n)]
			if !waits {
				break
			}
			c.slow = max(c.slow, time.Since(born)-d)
		}
		for n := c.judge.Came(name); n > 0; n-- {
			key := fmt.Sprint(name, n)
			if _, waits := c.born[key]; !waits {
				break
			}
			delete(c.born, key)
		}
	}
}

func (c *crowd) verdict(t *testing.T) {
	t.Helper()
	for _, name := range c.names {
		if err := c.judge.Verdict(name, 1, c.wrote); err != nil {
			t.Error(err)
		}
	}
	c.unmarked(t)
}

// TestMoreContainersThanStreams has 100 containers write a line each second for
// ten minutes, where 64 logs can be followed.
func TestMoreContainersThanStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 100)
		c.start()
		c.write(60)
		first, _ := c.kubelet.opens()
		asked := map[string]int{}
		for name, n := range c.kubelet.asked {
			asked[name] = n
		}
		c.write(540)
		all, most := c.kubelet.opens()
		c.wait(maxPoll)
		c.verdict(t)
		worst := 0
		for _, name := range c.names {
			worst = max(worst, c.kubelet.asked[name]-asked[name])
		}
		t.Logf("no line was older than %s; %d requests a minute, %.1f of one container; %d logs were followed at once",
			c.slow, (all-first)/9, float64(worst)/9, most)
		if c.slow > time.Minute {
			t.Errorf("a line was %s old", c.slow)
		}
		if worst > 9*3 {
			t.Errorf("a container was asked for %d times in nine minutes", worst)
		}
		if most > c.agent.Streams {
			t.Errorf("%d logs were followed at the same time", most)
		}
		c.end()
	})
}

func TestAsManyContainersAsStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 64)
		c.start()
		c.write(60)
		first, _ := c.kubelet.opens()
		c.write(300)
		all, _ := c.kubelet.opens()
		c.verdict(t)
		if c.slow > time.Second || all-first > 5 {
			t.Errorf("a line was %s old, and there were %d requests in five minutes", c.slow, all-first)
		}
		c.end()
	})
}

func TestManySilentStreamsAreAskedForSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 400)
		c.tune = func(a *Component) { a.Streams = maxLogs }
		c.start()
		c.wait(time.Minute)
		first, _ := c.kubelet.opens()
		c.wait(5 * time.Hour)
		if all, _ := c.kubelet.opens(); all-first > 15*5*60 {
			t.Errorf("%d requests a minute while nobody wrote", (all-first)/(5*60))
		}
		c.end()
	})
}

// A kubelet that ends each stream is asked less and less often, also where every
// stream brings a line and other pods of the node change all the time.
func TestStreamsThatEndAreTakenUpAgainWithGrowingPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 40)
		c.kubelet.brief = true
		c.start()
		minutes := func(n int) (requests int) {
			before, _ := c.kubelet.opens()
			for second := range 60 * n {
				if second%10 == 0 {
					c.wrote++
					for _, name := range c.names {
						c.kubelet.write(name, logjudge.Line(name, c.wrote, ""))
					}
				}
				_ = c.pods.Publish("eve-kube-app/other", types.Pod{
					Namespace: "eve-kube-app", Name: "other", NodeName: "n1", RestartCount: int32(second),
				})
				c.wait(time.Second)
			}
			all, _ := c.kubelet.opens()
			return (all - before) / n
		}
		first := minutes(1)
		later := minutes(10)
		t.Logf("%d requests in the first minute, then %d a minute", first, later)
		if later > 2*len(c.names) || first < 2*later {
			t.Errorf("%d logs cost %d requests in the first minute, then %d a minute", len(c.names), first, later)
		}
		// One that lasts is no such stream: when it breaks, it is taken up again at once.
		c.kubelet.do(func() { c.kubelet.brief = false })
		c.wait(2 * maxPause)
		c.write(2 * int(lasting/time.Second))
		c.kubelet.cut(errCut)
		c.slow = 0
		c.write(5)
		if c.slow > 3*time.Second {
			t.Errorf("after a stream that lasted a line was %s late", c.slow)
		}
		c.verdict(t)
		c.end()
	})
}

// A log that fills its file between two reads has to be followed: the kubelet
// serves only the newest of its files.
func TestALogThatIsWrittenFastGetsAStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 10)
		c.tune = func(a *Component) { a.Streams = 3 }
		c.start()
		c.write(60)
		fast, pad := "", strings.Repeat("x", 1<<10)
		for _, name := range c.names {
			if c.kubelet.asked[name] > 1 {
				fast = name
			}
		}
		n := c.wrote
		line := func(count int) {
			for range count {
				n++
				c.kubelet.write(fast, logjudge.Line(fast, n, pad))
			}
			time.Sleep(time.Second)
		}
		// Two reads, of which the first may come before it has written much, and one more
		// before another log has given up its stream.
		for range 2*int(maxPoll/time.Second) + heavy/(20<<10) + 1 {
			line(20)
		}
		for range 20 { // now it is rotated all the time
			line(500)
			synctest.Wait()
			c.kubelet.rotate(fast)
		}
		time.Sleep(time.Minute)
		if err := c.judge.Verdict(fast, 1, n); err != nil {
			t.Error(err)
		}
		c.unmarked(t)
		c.end()
	})
}

func TestARestartOfAContainerWithoutAStreamIsReadAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 5)
		c.tune = func(a *Component) { a.Streams = 1 }
		c.start()
		for range 20 {
			c.write(5)
			for _, name := range c.names {
				c.kubelet.restart(name)
			}
			c.write(1)
			c.show(c.names...)
			c.write(4)
		}
		c.wait(time.Minute)
		c.verdict(t)
		c.end()
	})
}

func TestHowManyStreams(t *testing.T) {
	const idle = 21 // what a real node takes without a log, this agent included
	for content, want := range map[string]int{"128\n": 40, "1024": 488, "8192": 512, "1": 1, "0": 1, "50": 1, "many": 40} {
		proc := t.TempDir()
		file := filepath.Join(proc, "sys/fs/inotify/max_user_instances")
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		if got := Streams(proc); got != want {
			t.Errorf("%q: %d streams, want %d", content, got, want)
		}
		if all, err := strconv.Atoi(strings.TrimSpace(content)); err == nil && want > 1 && all-idle-want < all/2 {
			t.Errorf("of %d less than half stay free beside %d streams", all, want)
		}
	}
	if got := Streams(t.TempDir()); got != 40 {
		t.Errorf("no such setting: %d streams", got)
	}
}
