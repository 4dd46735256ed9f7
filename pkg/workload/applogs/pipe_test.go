package applogs

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestRecordsAreNotTorn has another writer on the pipe, as pillar's agents are
// beside this one, and a reader that is slower than both.
func TestRecordsAreNotTorn(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	other, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", w.Fd()), os.O_WRONLY, 0) // as another process has it
	if err != nil {
		t.Fatal(err)
	}
	records := newWriter(appID, "c", DefaultMaxRecord)
	text := bytes.Repeat([]byte("x"), 3*DefaultMaxRecord) // so its first record is as long as one may be
	mine, _ := records.append(nil, piece{stamp: stamp, text: text, first: true, last: true}, 0, false)
	others := []byte(`{"source":"zedmanager","msg":"` + strings.Repeat("y", 150) + `"}` + "\n")
	var writing sync.WaitGroup
	for to, line := range map[*os.File][]byte{w: mine, other: others} {
		writing.Go(func() {
			defer to.Close()
			for range 300 {
				if _, err := to.Write(line); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	torn, read := 0, 0
	for in := bufio.NewReaderSize(r, 1<<10); ; {
		line, err := in.ReadBytes('\n')
		if err != nil {
			break
		}
		if read++; read%50 == 0 {
			time.Sleep(time.Millisecond) // the pipe is full all the time
		}
		if !bytes.Equal(line, mine) && !bytes.Equal(line, others) {
			torn++
		}
	}
	writing.Wait()
	if torn > 0 || read < 600 {
		t.Errorf("%d of %d lines are torn", torn, read)
	}
}
