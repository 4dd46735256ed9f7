package kubetest

import (
	"errors"
	"sync"
)

// ErrKilled is what a Mortal hears that is dead.
var ErrKilled = errors.New("killed")

// Mortal is the process of an agent that ends at one of its effects as SIGKILL ends it: nothing
// that it does from then on has an effect.
type Mortal struct {
	At    string // the effect
	After bool   // has taken place by then
	Died  chan struct{}

	mu   sync.Mutex
	dead bool
}

// Do carries out act, which is that effect, unless the process is dead.
func (m *Mortal) Do(effect string, act func() error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.dead:
		return ErrKilled
	case effect != m.At:
		return act()
	}
	m.dead = true
	defer close(m.Died)
	if m.After {
		if err := act(); err != nil {
			return err
		}
	}
	return ErrKilled
}

// Point is the kill point at which it dies.
func (m *Mortal) Point(component string) string {
	if m.After {
		return component + "/" + m.At + "/after"
	}
	return component + "/" + m.At + "/before"
}
