package leases

import (
	"context"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ktypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	typedcoordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/utils/ptr"

	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/types"
)

// LeaseOf is the row of a Lease. Rows can be compared.
func LeaseOf(l *coordinationv1.Lease) types.Lease {
	var note lockNote
	if l.Name == DrainLease {
		note, _ = readNote(l.Annotations[LockAnnotation])
	}
	return types.Lease{
		Task:     note.Task,
		BootID:   note.BootID,
		Name:     l.Name,
		Version:  l.ResourceVersion,
		Holder:   Holder(l),
		Duration: time.Duration(ptr.Deref(l.Spec.LeaseDurationSeconds, 0)) * time.Second,
		Acquired: ptr.Deref(l.Spec.AcquireTime, metav1.MicroTime{}).UTC().Round(0),
		Renewed:  ptr.Deref(l.Spec.RenewTime, metav1.MicroTime{}).UTC().Round(0),
	}
}

// leases is a client of the Leases of Namespace that takes no answer about
// something else for one, and notes what it sees. The methods that it does not
// define are client-go's.
type leases struct {
	typedcoordination.LeaseInterface
	seen *Observations
}

// On returns the Leases of zedkube's namespace, as asked for over a connection.
func On(conn *access.Connection) leases {
	return leases{LeaseInterface: conn.Kube.CoordinationV1().Leases(access.Namespace), seen: access.Kept[Observations](conn)}
}

func (l leases) Leases(string) typedcoordination.LeaseInterface { return l }

func (l leases) Get(ctx context.Context, name string, o metav1.GetOptions) (*coordinationv1.Lease, error) {
	return l.noted(name, "", func() (*coordinationv1.Lease, error) { return l.LeaseInterface.Get(ctx, name, o) })
}

func (l leases) Create(ctx context.Context, lease *coordinationv1.Lease, o metav1.CreateOptions) (*coordinationv1.Lease, error) {
	return l.noted(lease.Name, Holder(lease), func() (*coordinationv1.Lease, error) { return l.LeaseInterface.Create(ctx, lease, o) })
}

func (l leases) Update(ctx context.Context, lease *coordinationv1.Lease, o metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	return l.noted(lease.Name, Holder(lease), func() (*coordinationv1.Lease, error) { return l.LeaseInterface.Update(ctx, lease, o) })
}

func (l leases) Patch(ctx context.Context, name string, kind ktypes.PatchType, data []byte, o metav1.PatchOptions, sub ...string) (*coordinationv1.Lease, error) {
	return l.noted(name, "", func() (*coordinationv1.Lease, error) { return l.LeaseInterface.Patch(ctx, name, kind, data, o, sub...) })
}

func (l leases) Delete(ctx context.Context, name string, o metav1.DeleteOptions) error {
	err := l.LeaseInterface.Delete(ctx, name, o)
	if err == nil || access.NotFound(err) {
		l.seen.gone(name)
	}
	return err
}

// noted sends what is about the Lease of that name, takes an answer about it
// and, unless wrote is "", about that holder, and notes it.
func (l leases) noted(name, wrote string, send func() (*coordinationv1.Lease, error)) (*coordinationv1.Lease, error) {
	asked := l.seen.ask()
	lease, err := send()
	switch {
	case access.NotFound(err):
		l.seen.absent(name, asked)
		return nil, err
	case err != nil:
		return nil, err
	case lease.Name != name || lease.Namespace != access.Namespace || lease.ResourceVersion == "",
		wrote != "" && Holder(lease) != wrote:
		return nil, access.ErrOther
	}
	l.seen.answered(LeaseOf(lease), asked)
	return lease, nil
}

// Holder is who holds the Lease, "" for nobody.
func Holder(l *coordinationv1.Lease) string { return ptr.Deref(l.Spec.HolderIdentity, "") }

// Client has the verbs on Leases.
type Client struct {
	*access.Session

	repairs chan struct{} // holds the one repair under way
}

// New returns the verbs on Leases.
func New(s *access.Session) *Client {
	return &Client{Session: s, repairs: make(chan struct{}, 1)}
}

// longestLease bounds the duration that a holder wrote: twice EVE's. One of
// years would keep everybody else out for as long after its death.
const longestLease = 10 * time.Minute

// observation is a Lease and since when it has been known to be so.
type observation struct {
	types.Lease
	since    time.Time
	turn     int    // of Observations, when it was last reported or read
	reported string // the version that the watch reported last, or nothingReported since an answer preceded it
	gone     bool   // there was such a Lease, of Version at the last
}

// nothingReported is the version of no Lease: nothing precedes it.
const nothingReported = "0"

// until is until when the Lease is its holder's, if it is not renewed; zero for
// one without holder. Nobody's clock counts but ours, and no duration below
// least: it is missing or wrong, and a holder that lives renews within that time.
func (s observation) until(least time.Duration) time.Time {
	if s.Holder == "" {
		return time.Time{}
	}
	return s.since.Add(min(max(s.Duration, least), longestLease))
}

// Observations is what one connection has seen of the Leases, by the watch and by
// answers, and when. That a holder has not renewed for long is known only from
// a Lease that was seen before and is the same now: so a look at the server
// precedes whatever is done because of it.
type Observations struct {
	mu      sync.Mutex
	seen    map[string]observation
	turn    int           // how often anything was heard
	whole   bool          // the watch tells of every change
	changed chan struct{} // closed at the next change; nil while nobody waits
}

// Look returns the Lease as it was last seen, without a name if there is none,
// whether a watch keeps that true, and what is closed when either changes.
func (s *Observations) Look(name string) (seen observation, whole bool, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changed == nil {
		s.changed = make(chan struct{})
	}
	if seen = s.seen[name]; seen.gone {
		seen = observation{}
	}
	return seen, s.whole, s.changed
}

// reported notes what the watch says. It may lag behind an answer, but never behind
// itself: what precedes what it has said already is of a restored etcd, in which
// the holder renews by versions that were there before.
func (s *Observations) reported(row types.Lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.seen[row.Name]
	restored := precedes(row.Version, was.reported)
	was.reported = row.Version
	if restored || !older(row.Version, was.Version) {
		s.note(observation{Lease: row, reported: row.Version})
	} else {
		s.seen[row.Name] = was
	}
}

// ask returns what the answer to a request that begins now is noted with.
func (s *Observations) ask() (asked int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.turn
}

// answered notes an answer. The watch may have reported later things meanwhile;
// what it reported before, the answer corrects: a restored etcd counts from an
// earlier version on, and the watch may lag behind that.
func (s *Observations) answered(row types.Lease, asked int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.seen[row.Name]
	if was.turn > asked && older(row.Version, was.Version) {
		return
	}
	now := observation{Lease: row}
	if precedes(row.Version, was.reported) {
		now.reported = nothingReported
	}
	s.note(now)
}

// absent notes an answer that there is no such Lease.
func (s *Observations) absent(name string, asked int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen[name].turn <= asked {
		s.remove(name)
	}
}

// reportedRemoved notes that the watch says that the Lease was removed: the one that it
// reported last. An answer may have reported one that was made since.
func (s *Observations) reportedRemoved(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if was := s.seen[name]; was.reported == "" || was.reported == was.Version || !older(was.reported, was.Version) {
		s.remove(name)
	}
}

// gone notes that the Lease was removed.
func (s *Observations) gone(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(name)
}

// older reports that version comes before known or is the same, as far as they
// can be compared.
func older(version, known string) bool {
	order, err := resourceversion.CompareResourceVersion(version, known)
	return err == nil && order <= 0
}

// precedes reports that version comes before known, as far as they can be compared.
func precedes(version, known string) bool { return version != known && older(version, known) }

// remove is called with mu held. The version stays known, to tell apart what
// the watch says of the Lease afterwards.
func (s *Observations) remove(name string) {
	if was, ok := s.seen[name]; ok && !was.gone {
		s.note(observation{Lease: types.Lease{Name: name, Version: was.Version}, gone: true})
	}
}

// note is called with mu held. A change of the Lease that is none of these
// fields is no renewal.
func (s *Observations) note(now observation) {
	s.turn++
	now.turn, now.since = s.turn, time.Now()
	was, known := s.seen[now.Name]
	if now.reported == "" {
		now.reported = was.reported
	}
	was.Version = now.Version
	same := known && was.Lease == now.Lease && was.gone == now.gone
	if same {
		now.since = was.since
	}
	if s.seen == nil {
		s.seen = map[string]observation{}
	}
	s.seen[now.Name] = now
	if !same {
		s.ring()
	}
}

// Holds notes whether a watch tells of every change.
func (s *Observations) Holds(_ string, whole bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.whole != whole {
		s.whole = whole
		s.ring()
	}
}

// ring is called with mu held.
func (s *Observations) ring() {
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}

// ObservedTable is a table whose rows are noted on their way in.
type ObservedTable struct {
	access.Writer[types.Lease]
	Seen *Observations
}

// Publish implements Writer.
func (s ObservedTable) Publish(name string, row types.Lease) error {
	s.Seen.reported(row)
	return s.Writer.Publish(name, row)
}

// Replace implements Writer. Each row of the list is noted.
func (s ObservedTable) Replace(rows map[string]types.Lease) error { return access.ReplaceEach(s, rows) }

// Unpublish implements Writer.
func (s ObservedTable) Unpublish(name string) error {
	s.Seen.reportedRemoved(name)
	return s.Writer.Unpublish(name)
}
