//go:build linux

package report

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/zedkube/zedkube/types"
)

const (
	pace = 25 * time.Millisecond
	// former is how long an agent may take after its start until what its former
	// run published is its own again.
	former = 15 * time.Second
)

// The topics that are read.
const (
	clusterTopic = "KubeClusterInfo"
	serviceTopic = "KubeUserServices"
	healthTopic  = "KubeReportHealth"
)

var topics = []string{clusterTopic, serviceTopic, healthTopic}

// reader notes what stands in the files of living agents.
type reader struct {
	stop context.CancelFunc
	done sync.WaitGroup

	mu       sync.Mutex
	nodes    map[string]*published
	reports  []sighting
	opinions []opinion
	wrongs   []string
}

// published is what is known of one node's files.
type published struct {
	folder string    // with a folder for each topic
	began  time.Time // its agent lives since; zero: it does not
	last   map[string]*version
}

// version is a file as it was read.
type version struct {
	info  fs.FileInfo
	index int // of its sighting or opinion
}

// is says whether the file is still that one. Its time alone does not tell: the
// clock of a file system ticks each few milliseconds.
func (v *version) is(info fs.FileInfo) bool {
	return v.info.ModTime().Equal(info.ModTime()) && v.info.Size() == info.Size() && os.SameFile(v.info, info)
}

// read begins with the folders of nodes; agent says which live.
func read(folders map[string]string) *reader {
	ctx, stop := context.WithCancel(context.Background())
	r := &reader{stop: stop, nodes: map[string]*published{}}
	for node, folder := range folders {
		r.nodes[node] = &published{folder: folder, last: map[string]*version{}}
	}
	r.done.Go(func() {
		for ctx.Err() == nil {
			r.look()
			select {
			case <-ctx.Done():
			case <-time.After(pace):
			}
		}
	})
	return r
}

// end stops reading. What stands there then goes on standing.
func (r *reader) end() {
	r.stop()
	r.done.Wait()
}

// agent notes that the agent of a node has started, or is no more: what it said
// counts no longer, although the files stay.
func (r *reader) agent(node string, up bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.nodes[node]
	p.began = time.Time{}
	if up {
		p.began = time.Now()
		return
	}
	for topic := range p.last {
		r.close(p, topic, time.Now())
	}
}

// close ends what stands in a file. mu is held.
func (r *reader) close(p *published, topic string, at time.Time) {
	v := p.last[topic]
	if v == nil {
		return
	}
	if topic == healthTopic {
		r.opinions[v.index].to = at
	} else {
		r.reports[v.index].to = at
	}
	delete(p.last, topic)
}

func (r *reader) look() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for node, p := range r.nodes {
		for _, topic := range topics {
			if p.began.IsZero() {
				continue
			}
			if err := r.lookAt(node, p, topic); err != nil {
				r.wrongs = append(r.wrongs, fmt.Sprintf("%s %s: %v", node, topic, err))
			}
		}
	}
}

// lookAt reads a file if it has been written anew.
func (r *reader) lookAt(node string, p *published, topic string) error {
	path := filepath.Join(p.folder, topic, types.Global+".json")
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		r.close(p, topic, time.Now())
		return nil
	}
	if err != nil {
		return err
	}
	if v := p.last[topic]; v != nil && v.is(info) {
		return nil
	}
	if info.ModTime().Before(p.began) && time.Since(p.began) < former {
		return nil
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the next look sees it
	}
	if err != nil {
		return err
	}
	now := time.Now()
	r.close(p, topic, now)
	v := &version{info: info}
	if v.index, err = r.take(node, topic, text, now); err == nil {
		p.last[topic] = v
	}
	return err
}

// take adds what was read and returns its place.
func (r *reader) take(node, topic string, text []byte, now time.Time) (index int, err error) {
	since := span{from: now}
	s := sighting{node: node, topic: topic, span: since, bytes: text}
	switch topic {
	case healthTopic:
		o := opinion{node: node, span: since}
		err = json.Unmarshal(text, &o.KubeReportHealth)
		r.opinions = append(r.opinions, o)
		return len(r.opinions) - 1, err
	case clusterTopic:
		var info types.KubeClusterInfo
		err = json.Unmarshal(text, &info)
		s.facts, s.sections = told(info), clusterSections
	default:
		var info types.KubeUserServices
		err = json.Unmarshal(text, &info)
		s.facts, s.sections = toldServices(info), serviceSections
	}
	r.reports = append(r.reports, s)
	return len(r.reports) - 1, err
}

// current is what a node tells now, and of itself.
func (r *reader) current(node, topic string) (report *sighting, health *types.KubeReportHealth) {
	r.mu.Lock()
	defer r.mu.Unlock()
	last := r.nodes[node].last
	if v := last[topic]; v != nil {
		s := r.reports[v.index]
		report = &s
	}
	if v := last[healthTopic]; v != nil {
		health = &r.opinions[v.index].KubeReportHealth
	}
	return report, health
}

// told counts what has been read so far.
func (r *reader) told() (reports, opinions int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.reports), len(r.opinions)
}
