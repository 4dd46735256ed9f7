package kubeapi

import (
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/types"
)

// status writes the one row of the table of types.APIStatus.
type status struct {
	log logrus.FieldLogger
	api access.Writer[types.APIStatus]

	mu   sync.Mutex
	row  types.APIStatus
	held map[string]bool // which views hold a complete list
}

// silent notes since when the server has been silent, zero if it answers.
func (s *status) silent(since time.Time, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.row.SilentSince, s.row.Reason = since, reason
	s.publish()
}

// configured notes whether a usable kubeconfig has been found.
func (s *status) configured(found bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.row.NoKubeconfig = !found
	s.publish()
}

// holds notes whether the table of a view holds a complete list.
func (s *status) holds(view string, complete bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held == nil {
		s.held = map[string]bool{}
	}
	if s.held[view] == complete {
		return
	}
	s.held[view] = complete
	s.row.Synced = s.held[viewNodes] && s.held[viewAppPods] && s.held[viewNodePods]
	s.row.Apps = s.held[viewVMIs] && s.held[viewVMISets] && s.held[viewSets]
	s.publish()
}

// whole reports whether the table of a view holds a complete list.
func (s *status) whole(view string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held[view]
}

func (s *status) publish() {
	if err := s.api.Publish(types.Global, s.row); err != nil {
		s.log.WithError(err).Error("publish API status")
	}
}
