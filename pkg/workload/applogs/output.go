package applogs

import (
	"io"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pkg/base/keptfile"
)

const (
	// batchSize is how much is written at once, but for a record that is longer:
	// what a pipe takes whole or not at all, from a process that dies, too, and
	// does not mix with what others write (PIPE_BUF of Linux).
	batchSize = 4096
	// keepEvery is how old the file that outlives a boot may be: after a power cut, or a
	// reboot that does not wait for the agent, that much comes twice. Each time is a sync: every 5 s it
	// would be 17,000 of them a day.
	keepEvery = time.Minute
	// patience is how long a stop waits for an output that is stuck.
	patience = 2 * time.Second
)

// delivery is records to write, and where the log is once they are written.
type delivery struct {
	slot  int
	text  []byte
	state checkpoint
	done  chan<- error // has room for one
}

// output writes what the readers bring and notes at once that it is written. A
// process that dies between the two writes this one batch again.
type output struct {
	log     logrus.FieldLogger
	w       io.Writer
	journal journal
	kept    keptfile.File

	in    chan delivery
	slots []checkpoint
	told  string // what was last wrong with the journal
}

// note writes slots of the journal again.
func (o *output) note(slots ...int) {
	for _, i := range slots {
		slot, err := encodeSlot(o.slots[i])
		if err == nil {
			err = o.journal.put(i, slot)
		}
		o.tell(err)
	}
}

// run serves deliveries until in is closed; meanwhile it has the slots kept.
func (o *output) run() {
	jobs := make(chan string, 1)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		o.keep(jobs)
	}()
	tick := time.NewTicker(keepEvery)
	defer tick.Stop()
	changed := true
	for open := true; open; {
		select {
		case d, ok := <-o.in:
			if open = ok; ok {
				d.done <- o.deliver(d)
				changed = true
			}
		case <-tick.C:
			if changed {
				select {
				case jobs <- keptText(o.slots):
					changed = false
				default: // the disk is slow
				}
			}
		}
	}
	o.journal.close()
	wait := time.NewTimer(patience)
	defer wait.Stop()
	select {
	case jobs <- keptText(o.slots):
	case <-wait.C:
	}
	close(jobs)
	select {
	case <-stopped:
	case <-wait.C:
		o.log.Warn("the positions in the app logs could not be saved: the disk does not answer")
	}
}

// deliver writes and notes. What fails to be noted was written anyway.
func (o *output) deliver(d delivery) error {
	slot, slotErr := encodeSlot(d.state)
	if len(d.text) > 0 {
		if _, err := o.w.Write(d.text); err != nil {
			return err
		}
	}
	if slotErr == nil {
		slotErr = o.journal.put(d.slot, slot)
	}
	o.slots[d.slot] = d.state
	o.tell(slotErr)
	return nil
}

// tell logs what is wrong with the journal when it is new.
func (o *output) tell(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != o.told && err != nil {
		o.log.WithError(err).Error("app log lines may be repeated after a restart")
	}
	o.told = text
}

// keep writes the file that outlives a boot.
func (o *output) keep(jobs <-chan string) {
	told := ""
	for content := range jobs {
		_, err := o.kept.Keep(keptfile.Desired{Do: keptfile.Write, Content: content})
		text := ""
		if err != nil {
			text = err.Error()
		}
		if text != told && err != nil {
			o.log.WithError(err).Error("app log lines may be repeated after a reboot")
		}
		told = text
	}
}
