package kubelet

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/zedkube/zedkube/types"
)

// A kubelet serves /var/log of its node below /logs/, if its configuration does
// not forbid it (enableSystemLogHandler). There is a directory for each container,
// in which it has <run>.log and what it rotated: <run>.log.<time>, with .gz once
// that is packed.

// listSize bounds the list of a directory.
const listSize = 1 << 20

var (
	linkPattern = regexp.MustCompile(`<a href="([^"]+)">`)
	filePattern = regexp.MustCompile(`^(\d+)\.log(\.\d{8}-\d{6}(\.gz)?)?$`)
)

// LogFiles lists the files that this node's kubelet keeps of a container's log, as
// they were written. Its error wraps types.ErrNoLog where it does not serve them.
func (c *Client) LogFiles(ctx context.Context, node types.Node, pod types.Pod, container string) ([]types.LogFile, error) {
	body, err := c.nodeLog(ctx, node, logDir(pod, container)+"/")
	if err != nil {
		return nil, err
	}
	defer body.Close()
	list, err := io.ReadAll(&capped{body, listSize})
	if err != nil {
		return nil, fmt.Errorf("list log files of pod %s: %w", pod.Key(), err)
	}
	return logFiles(string(list)), nil
}

// logFiles reads the list of a directory as net/http writes it.
func logFiles(list string) []types.LogFile {
	found := map[string]types.LogFile{}
	for _, link := range linkPattern.FindAllStringSubmatch(list, -1) {
		name := path.Base(html.UnescapeString(link[1]))
		part := filePattern.FindStringSubmatch(name)
		if part == nil {
			continue
		}
		run, err := strconv.ParseInt(part[1], 10, 32)
		if err != nil {
			continue
		}
		whole := strings.TrimSuffix(name, packed)
		if _, twice := found[whole]; !twice || name != whole { // just packed, and not removed yet
			found[whole] = types.LogFile{Name: name, Run: int32(run), Rotated: part[2] != ""}
		}
	}
	files := make([]types.LogFile, 0, len(found))
	for _, f := range found {
		files = append(files, f)
	}
	slices.SortFunc(files, types.LogFile.Compare)
	return files
}

const packed = ".gz"

// LogFile opens one of them; its lines are as those of Logs.
func (c *Client) LogFile(ctx context.Context, node types.Node, pod types.Pod, container string, file types.LogFile) (io.ReadCloser, error) {
	body, err := c.nodeLog(ctx, node, path.Join(logDir(pod, container), file.Name))
	if err != nil {
		return nil, err
	}
	from := io.Reader(body)
	if strings.HasSuffix(file.Name, packed) {
		if from, err = gzip.NewReader(body); err != nil {
			return nil, errors.Join(fmt.Errorf("unpack log %s of pod %s: %w", file.Name, pod.Key(), err), body.Close())
		}
	}
	return struct {
		io.Reader
		io.Closer
	}{&criLog{r: bufio.NewReader(from)}, body}, nil
}

func logDir(pod types.Pod, container string) string {
	return path.Join("/logs/pods", pod.Namespace+"_"+pod.Name+"_"+pod.UID, container)
}

// nodeLog opens a file below /var/log of this node, or a directory, whose path
// ends with a slash. Reading it ends when ctx does, and when another kubeconfig
// comes into use.
func (c *Client) nodeLog(ctx context.Context, node types.Node, path string) (io.ReadCloser, error) {
	conn, done, err := c.Use()
	if err != nil {
		return nil, fmt.Errorf("read %s of this node's kubelet: %w", path, err)
	}
	ctx, cancel := context.WithCancel(ctx)
	unlink := context.AfterFunc(conn.Ctx, cancel)
	s := &logStream{ctx: ctx, end: sync.OnceFunc(func() {
		unlink()
		cancel()
		done()
	})}
	if s.body, err = open(ctx, conn.Cfg, node, path, true); err == nil {
		return s, nil
	}
	s.end()
	var code codeError
	if errors.As(err, &code) && slices.Contains([]codeError{http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed}, code) { // it is not there, or this way is closed
		err = fmt.Errorf("%w: %w", types.ErrNoLog, err)
	}
	return nil, fmt.Errorf("read %s of this node's kubelet: %w", path, err)
}

// criLog turns a runtime's log, "<time> <stream> <tags> <text>", into what a kubelet
// makes of it, "<time> <text>". A line that the runtime has cut has the first tag P
// in all parts but the last.
type criLog struct {
	r    *bufio.Reader
	out  []byte // to be read; valid until r is
	head bool   // the present part's head is read
	cut  bool   // the present part is not the last of its line
	goes bool   // the present part is not the first of its line
	err  error  // nothing comes after it
}

// ErrNoCRI is returned for a file that is not in the format of a container runtime's logs.
var ErrNoCRI = errors.New("not a log of a runtime")

func (c *criLog) Read(p []byte) (int, error) {
	for len(c.out) == 0 {
		if c.err != nil {
			return 0, c.err
		}
		c.err = c.more()
	}
	n := copy(p, c.out)
	c.out = c.out[n:]
	return n, nil
}

func (c *criLog) more() error {
	if !c.head {
		return c.readHead()
	}
	text, err := c.r.ReadSlice('\n')
	if err == nil {
		c.head, c.goes = false, c.cut
		if c.cut {
			text = text[:len(text)-1]
		}
	}
	c.out = text
	if errors.Is(err, bufio.ErrBufferFull) {
		return nil
	}
	return err
}

func (c *criLog) readHead() error {
	var stamp []byte
	for n := range 3 {
		field, err := c.r.ReadSlice(' ')
		switch {
		case errors.Is(err, io.EOF) && n == 0 && len(field) == 0:
			return io.EOF
		case err != nil:
			return fmt.Errorf("%w: it begins with %.40q", ErrNoCRI, field)
		}
		switch n {
		case 0:
			stamp = bytes.Clone(field)
		case 2:
			tag, _, _ := bytes.Cut(bytes.TrimSuffix(field, []byte(" ")), []byte(":"))
			c.cut = string(tag) == "P"
		}
	}
	c.head = true
	if !c.goes {
		c.out = stamp
	}
	return nil
}

// Logs opens a container's log. Reading it ends when ctx does, when the
// container has ended, when another kubeconfig comes into use, and when the API
// server is found silent; it has no deadline of its own. It tells nothing about
// the server either way: the kubelet of a container that says nothing does not
// even send the head of its answer. The error wraps types.ErrNoLog where there
// is no such log.
func (c *Client) Logs(ctx context.Context, pod types.Pod, o types.LogOptions) (io.ReadCloser, error) {
	conn, done, err := c.Use()
	if err != nil {
		return nil, fmt.Errorf("read log of pod %s: %w", pod.Key(), err)
	}
	if reason, dead := conn.Liveness.Dead(); dead {
		done()
		return nil, fmt.Errorf("read log of pod %s: %w: %s", pod.Key(), types.ErrNoAPI, reason)
	}
	alive, _ := conn.Liveness.Gates()
	ctx, cancel := context.WithCancel(ctx)
	unlinkConn, unlinkAlive := context.AfterFunc(conn.Ctx, cancel), context.AfterFunc(alive, cancel)
	s := &logStream{ctx: ctx}
	s.end = sync.OnceFunc(func() {
		unlinkConn()
		unlinkAlive()
		cancel()
		done()
	})
	s.body, err = conn.Logs.RESTClient().Get().Namespace(pod.Namespace).Name(pod.Name).Resource("pods").SubResource("log").
		VersionedParams(logOptions(o), scheme.ParameterCodec).MaxRetries(0).Stream(ctx)
	if err != nil {
		s.end()
		if apierrors.IsNotFound(err) || apierrors.IsBadRequest(err) { // what a kubelet says of a log that is not there
			err = fmt.Errorf("%w: %w", types.ErrNoLog, err)
		}
		return nil, fmt.Errorf("read log of pod %s: %w", pod.Key(), err)
	}
	return s, nil
}

func logOptions(o types.LogOptions) *corev1.PodLogOptions {
	options := &corev1.PodLogOptions{Container: o.Container, Previous: o.Previous, Follow: o.Follow, Timestamps: true}
	if !o.Since.IsZero() {
		since := metav1.NewTime(o.Since)
		options.SinceTime = &since
	}
	if o.Tail > 0 {
		options.TailLines = &o.Tail
	}
	return options
}

// logStream is a log under way.
type logStream struct {
	ctx  context.Context
	body io.ReadCloser
	end  func()
}

func (s *logStream) Read(p []byte) (int, error) {
	n, err := s.body.Read(p)
	if err != nil {
		if s.ctx.Err() != nil { // cut off here, which is no end of the log
			err = s.ctx.Err()
		}
		s.end() // a reader that forgets to close it holds nobody up
	}
	return n, err
}

func (s *logStream) Close() error {
	s.end()
	return s.body.Close()
}
