package statusserver

import (
	"sync/atomic"
	"time"

	"github.com/zedkube/zedkube/pkg/base/keptfile"
	"github.com/zedkube/zedkube/pkg/base/safefile"
)

// proofRecord remembers which cluster was once seen with a zedkube of this kind on
// every Node. What is not atomic is touched by Step only.
type proofRecord struct {
	stamped time.Time   // since when the stamps of all Nodes have been seen fresh; zero for not now
	cluster string      // its UUID, "" for none
	isRead  bool        // the file was read
	kept    string      // what the file says
	all     atomic.Bool // it is the cluster of this node
}

// read returns the cluster, the first time from the file at path. One that cannot
// be read is as good as none: it is written again.
func (p *proofRecord) read(path string) string {
	if !p.isRead {
		content, err := safefile.Read(path, maxTopicFile)
		if err == nil {
			p.cluster, p.kept = string(content), string(content)
		}
		p.isRead = true
	}
	return p.cluster
}

// recordProved keeps in the file that all Nodes of a cluster have proofs, "" for
// that they have not. What cannot be written holds until the end of the process,
// and is tried again.
func (c *Component) recordProved(cluster string) error {
	c.proof.all.Store(cluster != "")
	if cluster == "" {
		return nil
	}
	if c.proof.cluster != cluster {
		c.proof.cluster = cluster
		c.Log.Info("every node runs a zedkube that can prove itself: reports now require a proof")
	}
	if c.proof.kept == cluster {
		return nil
	}
	file := keptfile.File{Path: c.ProversFile, Name: "the note that all nodes can prove themselves", MakeDir: true}
	did, err := file.Keep(keptfile.Desired{Do: keptfile.Write, Content: cluster})
	if err == nil && did != keptfile.Awaits {
		c.proof.kept = cluster
	}
	return err
}

// withoutProof reports whether a Node without a zedkube of this kind needs no proof.
func (c *Component) withoutProof() bool {
	return c.Reports == ReportsAlways || c.Reports != ReportsNever && !c.proof.all.Load()
}
