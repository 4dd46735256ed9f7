package kubeapi

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

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

// LogFiles lists the files that the kubelet keeps of a container's log, as they
// were written. Its error wraps types.ErrNoLog where it does not serve them.
func (c *Client) LogFiles(ctx context.Context, pod types.Pod, container string) ([]types.LogFile, error) {
	body, err := c.nodeLog(ctx, pod, logDir(pod, container)+"/")
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
func (c *Client) LogFile(ctx context.Context, pod types.Pod, container string, file types.LogFile) (io.ReadCloser, error) {
	body, err := c.nodeLog(ctx, pod, path.Join(logDir(pod, container), file.Name))
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
	return path.Join("/api/v1/nodes", pod.NodeName, "proxy/logs/pods", pod.Namespace+"_"+pod.Name+"_"+pod.UID, container)
}

// nodeLog opens a file below /var/log of a pod's node, or a directory, whose path
// ends with a slash.
func (c *Client) nodeLog(ctx context.Context, pod types.Pod, path string) (io.ReadCloser, error) {
	body, err := c.stream(ctx, pod, func(client rest.Interface) *rest.Request {
		return client.Get().AbsPath(path).SetHeader("Accept", "*/*") // it is no object
	})
	if apierrors.IsForbidden(err) || apierrors.IsMethodNotSupported(err) { // this way is closed
		err = fmt.Errorf("%w: %w", types.ErrNoLog, err)
	}
	return body, err
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

var errNoCRI = errors.New("not a log of a runtime")

// Read implements io.Reader.
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
			return fmt.Errorf("%w: it begins with %.40q", errNoCRI, field)
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
