package audit

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

const victimDir = "ZEDKUBE_AUDIT_VICTIM"

// victim records operations until it is killed, and says of each when its
// beginning and when its end were recorded.
func victim(dir string) {
	r := &Record{Log: logrus.New(), Info: &pubsub.Table[types.EdgeNodeInfo]{}, Dir: dir, Segment: 4 << 10}
	for i := 0; ; i++ {
		end := r.Begin(types.Operation{Op: "evict", Target: fmt.Sprintf("pod/%d-%d", os.Getpid(), i)})
		fmt.Printf("begun pod/%d-%d\n", os.Getpid(), i)
		end(types.OperationOK, nil)
		fmt.Printf("ended pod/%d-%d\n", os.Getpid(), i)
	}
}

// TestAKillLosesNothing kills a process that records, again and again, in one
// directory.
func TestAKillLosesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "audit")
	known := map[string]string{} // by target, the last that was said
	for range 15 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), victimDir+"="+dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		in := bufio.NewScanner(out)
		said := func() bool {
			if !in.Scan() {
				return false
			}
			if what, target, ok := strings.Cut(in.Text(), " "); ok && strings.HasPrefix(target, fmt.Sprintf("pod/%d-", cmd.Process.Pid)) {
				known[target] = what
			}
			return true
		}
		if !said() {
			t.Fatal("the process said nothing")
		}
		kill := time.AfterFunc(time.Duration(rand.IntN(3000))*time.Microsecond, func() { _ = cmd.Process.Kill() })
		for said() {
		}
		kill.Stop()
		_ = cmd.Wait()
	}
	all, problems, err := Read(dir)
	problems.Torn = 0 // the kernel ends a write of a killed process between two pages: of an operation that was not said yet
	if err != nil || problems != (Problems{}) {
		t.Errorf("reading found %+v, %v", problems, err)
	}
	found := map[string]types.OperationOutcome{}
	for _, o := range all {
		found[o.Target] = o.Outcome
	}
	oldest := len(found)
	for target, what := range known {
		outcome, there := found[target]
		if !there && oldest >= maxFiles*4<<10/400 {
			continue // older than what is read
		}
		if !there || what == "ended" && outcome != types.OperationOK {
			t.Errorf("%s was %s, and is %q, %v", target, what, outcome, there)
		}
	}
	t.Logf("%d operations of 15 processes", len(all))
}
