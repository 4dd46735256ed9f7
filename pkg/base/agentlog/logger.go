package agentlog

import (
	"io"
	"os"
	"strings"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pkg/base/printable"
)

// New logs JSON lines with the field names of EVE's agents, which newlogd
// reads (docs/wire.md, "Log lines").
func New(w io.Writer) *logrus.Logger {
	logrus.ErrorKey = "err" // one name for it, no matter who logs
	log := logrus.New()
	log.SetOutput(w)
	log.SetFormatter(&logrus.JSONFormatter{TimestampFormat: time.RFC3339Nano})
	log.AddHook(identity{"source": "zedkube", "pid": os.Getpid()})
	return log
}

// identity adds to each line which agent wrote it.
type identity logrus.Fields

// Levels implements logrus.Hook.
func (identity) Levels() []logrus.Level { return logrus.AllLevels }

// Fire implements logrus.Hook. What other programs wrote is in errors, too: a
// terminal that shows the device's log must not act upon it.
func (i identity) Fire(e *logrus.Entry) error {
	e.Message = escapeLines(e.Message)
	for k, v := range e.Data {
		switch v := v.(type) {
		case string:
			e.Data[k] = escapeLines(v)
		case error:
			e.Data[k] = escapeLines(v.Error())
		}
	}
	for k, v := range i {
		e.Data[k] = v
	}
	return nil
}

// escapeLines is printable.Escape for a text of lines.
func escapeLines(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = printable.Escape(lines[i])
	}
	return strings.Join(lines, "\n")
}
