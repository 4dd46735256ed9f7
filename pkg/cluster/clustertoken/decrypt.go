package clustertoken

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/zedkube/zedkube/pkg/base/cipher"
	"github.com/zedkube/zedkube/types"
)

const (
	// askTimeout is for a TPM that others use as well.
	askTimeout = 20 * time.Second
	// maxManifest bounds what a small block may unzip to.
	maxManifest = 10 << 20
	// maxToken leaves room for the rest of EdgeNodeClusterStatus in one packet.
	// One that does not fit would hold up all else that the status says; a k3s
	// token has a hundred bytes.
	maxToken = 4 << 10
)

// keyRequest is the decryption under way.
type keyRequest struct {
	part     part
	question question
	canceled bool // its result says nothing of the question
}

// result is what came of it.
type result struct {
	clear string
	err   string
	kind  cipher.Kind
}

// begin decrypts beside the steps, under a context that outlives this one: a
// TPM or a disk may hang.
func (c *Component) begin(ctx context.Context, p part, q question) {
	c.running = &keyRequest{part: p, question: q}
	c.decrypting.Begin(ctx, askTimeout, func(ctx context.Context) result { return answerTo(ctx, c.Device, p, q) })
}

func answerTo(ctx context.Context, d Device, p part, q question) result {
	secret, err := d.Decrypt(ctx, q.block, q.certs)
	switch {
	case err != nil:
		return result{err: err.Error(), kind: cipher.KindOf(err)}
	case p == token:
		return readToken(secret.ClusterToken)
	case len(secret.Manifest) == 0:
		return result{} // zedagent gives one block for both, and few clusters have a manifest
	}
	clear, err := unzip(secret.Manifest)
	if err != nil {
		return result{err: "unzip the registration manifest: " + err.Error(), kind: cipher.UnmarshalFailed}
	}
	return result{clear: clear}
}

// readToken takes a token that the kube container can write into a line of
// YAML. Blanks around it do not count there.
func readToken(clear string) result {
	clear = strings.TrimSpace(clear)
	switch {
	case clear == "":
		return result{err: "the block contains no cluster token", kind: cipher.NoData}
	case len(clear) > maxToken:
		return result{err: fmt.Sprintf("it has %d bytes, more than %d", len(clear), maxToken), kind: cipher.Invalid}
	case strings.ContainsFunc(clear, unicode.IsControl):
		return result{err: "it contains a control character", kind: cipher.Invalid}
	}
	return result{clear: clear}
}

// unzip takes the whole of it or nothing.
func unzip(raw []byte) (string, error) {
	r, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		return "", err
	}
	clear, err := io.ReadAll(io.LimitReader(r, maxManifest+1))
	switch {
	case err != nil:
		return "", err
	case len(clear) > maxManifest:
		return "", fmt.Errorf("it is longer than %d bytes", maxManifest)
	case len(clear) == 0:
		return "", fmt.Errorf("it is empty")
	}
	return string(clear), nil
}

// collect takes in the result of the decryption that has ended, if one has,
// and forgets answers to what is not asked any more.
func (c *Component) collect(now time.Time, wants [parts]*question) error {
	var err error
	if out, ok := c.decrypting.Take(); ok {
		err = c.take(now, *c.running, out, wants)
		c.running = nil
	}
	for p, a := range c.answers {
		if a != nil && (wants[p] == nil || !reflect.DeepEqual(a.of, *wants[p])) {
			c.answers[p] = nil
		}
	}
	return err
}

// take counts a result, and makes it the answer if it is still asked for. What
// was asked, not asked and asked again meanwhile is begun again.
func (c *Component) take(now time.Time, asked keyRequest, out result, wants [parts]*question) error {
	if asked.canceled || wants[asked.part] == nil || !reflect.DeepEqual(*wants[asked.part], asked.question) {
		return nil
	}
	a := &answer{of: asked.question, at: now, clear: out.clear, err: out.err, kind: out.kind}
	last := c.answers[asked.part]
	if a.err != "" {
		a.tries = 1
		if last != nil {
			a.tries = last.tries + 1
		}
	}
	c.answers[asked.part] = a
	c.logAnswer(asked.part, last, a)
	m, _ := c.Metrics.Get(types.Global)
	if err := c.Metrics.Publish(types.Global, count(m, out, now)); err != nil {
		return fmt.Errorf("publish the count of decryptions: %w", err)
	}
	return nil
}

// logAnswer logs what is new, and nothing of what is secret.
func (c *Component) logAnswer(p part, last, is *answer) {
	what := "cluster token"
	if p == manifest {
		what = "registration manifest"
	}
	log := c.Log.WithField("cluster", is.of.cluster.String())
	switch {
	case is.err == "" && is.clear == "":
		log.Info("the controller sends no " + what)
	case is.err == "":
		log.Info(what + " decrypted")
	case last == nil || last.err != is.err:
		log.WithField("err", is.err).Warn(what + " cannot be decrypted, keeping the last valid one of this cluster")
	}
}

// remember keeps the last good manifest while this node may need it.
func (c *Component) remember(f facts) goodManifest {
	if a := c.answers[manifest]; a != nil && a.err == "" {
		c.good = goodManifest{cluster: a.of.cluster, clear: a.clear}
	}
	if f.known && f.wants[manifest] == nil {
		c.good = goodManifest{}
	}
	return c.good
}

// count counts one attempt. What a former run of this boot counted goes on.
func count(m types.CipherMetrics, out result, now time.Time) types.CipherMetrics {
	m.AgentName = "zedkube"
	counters := make([]uint64, cipher.Kinds)
	copy(counters, m.TypeCounters)
	m.TypeCounters = slices.Clip(counters)
	if out.err == "" {
		m.SuccessCount++
		m.LastSuccess = now.UTC()
		return m
	}
	m.FailureCount++
	m.LastFailure = now.UTC()
	m.TypeCounters[out.kind]++
	return m
}
