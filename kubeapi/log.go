package kubeapi

import (
	"github.com/go-logr/logr"
	"github.com/sirupsen/logrus"
	"k8s.io/klog/v2"
)

// LogTo sends what client-go has to say into log, for the whole process. All
// of it is of level debug: what matters of it comes back to us as an error,
// and is logged where it is known what it means.
func LogTo(log logrus.FieldLogger) {
	klog.SetLogger(logr.New(sink{log: log.WithField("by", "client-go")}))
}

// sink is the logr backend.
type sink struct {
	log  logrus.FieldLogger
	name string
}

func (s sink) Init(logr.RuntimeInfo) {}

func (s sink) Enabled(level int) bool { return level == 0 }

func (s sink) Info(_ int, msg string, kv ...any) { s.with(kv).Debug(msg) }

func (s sink) Error(err error, msg string, kv ...any) { s.with(kv).WithError(err).Debug(msg) }

func (s sink) WithValues(kv ...any) logr.LogSink { return sink{log: s.with(kv), name: s.name} }

func (s sink) WithName(name string) logr.LogSink { return sink{log: s.log, name: name} }

// with keeps the values in a field of their own, away from the keys of our log.
func (s sink) with(kv []any) logrus.FieldLogger {
	fields := logrus.Fields{}
	for i := 0; i+1 < len(kv); i += 2 {
		if key, ok := kv[i].(string); ok {
			fields["kube."+key] = kv[i+1]
		}
	}
	if s.name != "" {
		fields["kube.logger"] = s.name
	}
	return s.log.WithFields(fields)
}
