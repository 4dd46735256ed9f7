package applogs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/zedkube/zedkube/pkg/base/safefile"
)

// checkpoint is what is kept of one log (docs/wire.md, "App log positions").
type checkpoint struct {
	App       string `json:"app"`
	Pod       string `json:"pod"` // its UID; "" where nothing is kept
	Container string `json:"container"`
	ID        string `json:"id,omitempty"`    // the instance that was read last
	Run       int32  `json:"run,omitempty"`   // which one that was, from 0
	Begun     bool   `json:"begun,omitempty"` // the position is in its log, not in that of one before
	Whole     bool   `json:"whole,omitempty"` // it has ended, and all it wrote is out
	position
	Off     bool    `json:"off,omitempty"`  // nobody wants it: what comes now is never told
	Gaps    int     `json:"gaps,omitempty"` // how many marks told of lines that were not there
	Dropped dropped `json:"dropped,omitzero"`
}

// dropped is what was left out since it was last told.
type dropped struct {
	Lines int       `json:"lines,omitempty"`
	Bytes int       `json:"bytes,omitempty"`
	From  time.Time `json:"from,omitzero"`
}

const (
	// maxLogs bounds the logs that are read at the same time, and with them both
	// files: ten times the pods that a device runs.
	maxLogs = 512
	// slotSize is what one log takes in the journal, in bytes. A slot lies within
	// one page, so a process that dies writes it whole or not at all.
	slotSize = 1024
)

// journal is a file of slots, one for each log, that outlives the process but
// not the boot.
type journal struct{ f *os.File }

// openJournal opens the journal, and reads what is in it.
func openJournal(path string) (journal, []checkpoint, error) {
	f, _, err := safefile.OpenFile(path, os.O_RDWR|os.O_CREATE|safefile.NoFollow, 0o600)
	if err != nil {
		return journal{}, nil, fmt.Errorf("open journal of app logs: %w", err)
	}
	raw, err := safefile.Head(f, maxLogs*slotSize)
	if err != nil {
		_ = f.Close()
		return journal{}, nil, fmt.Errorf("read journal of app logs: %w", err)
	}
	slots := make([]checkpoint, maxLogs)
	for i := range slots {
		if from := i * slotSize; from < len(raw) {
			slots[i] = decodeSlot(raw[from:min(from+slotSize, len(raw))])
		}
	}
	return journal{f}, slots, nil
}

// put writes one slot.
func (j journal) put(i int, slot []byte) error {
	if j.f == nil {
		return nil
	}
	if _, err := j.f.WriteAt(slot, int64(i)*slotSize); err != nil {
		return fmt.Errorf("write journal of app logs: %w", err)
	}
	return nil
}

func (j journal) close() {
	if j.f != nil {
		_ = j.f.Close()
	}
}

// decodeSlot returns what is in a slot; nothing where it is not one of ours.
func decodeSlot(raw []byte) (s checkpoint) {
	raw = bytes.TrimRight(raw, " \n\x00")
	if len(raw) == 0 || json.Unmarshal(raw, &s) != nil || s.Pod == "" || s.Container == "" || s.N < 0 || s.Part < 0 {
		return checkpoint{}
	}
	return s
}

var errSlot = errors.New("longer than its slot")

// encodeSlot fills a slot, to be read by people, too.
func encodeSlot(s checkpoint) ([]byte, error) {
	slot := bytes.Repeat([]byte{' '}, slotSize)
	slot[slotSize-1] = '\n'
	if s.Pod == "" {
		return slot, nil
	}
	raw, err := json.Marshal(s)
	if err == nil && len(raw) >= slotSize {
		err = errSlot
	}
	if err != nil {
		return nil, fmt.Errorf("record the log position of container %s: %w", s.Container, err)
	}
	copy(slot, raw)
	return slot, nil
}

// keptSlots reads the file that outlives a boot: one log each line.
func keptSlots(path string) ([]checkpoint, error) {
	slots := make([]checkpoint, maxLogs)
	f, _, err := safefile.OpenFile(path, os.O_RDONLY|safefile.NoFollow, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return slots, nil
	}
	if err != nil {
		return slots, fmt.Errorf("open checkpoints of app logs: %w", err)
	}
	defer f.Close()
	raw, err := safefile.Head(f, maxLogs*slotSize)
	if err != nil {
		return slots, fmt.Errorf("read checkpoints of app logs: %w", err)
	}
	i := 0
	for line := range bytes.Lines(raw) {
		if s := decodeSlot(line); s.Pod != "" && i < len(slots) {
			slots[i] = s
			i++
		}
	}
	return slots, nil
}

// keptText is the content of that file.
func keptText(slots []checkpoint) string {
	var b bytes.Buffer
	for _, s := range slots {
		if s.Pod == "" {
			continue
		}
		if raw, err := json.Marshal(s); err == nil {
			b.Write(raw)
			b.WriteByte('\n')
		}
	}
	return b.String()
}
