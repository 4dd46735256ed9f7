//go:build linux

package devcluster

import (
	"cmp"
	"path"
	"strconv"

	corev1 "k8s.io/api/core/v1"
)

// Prints is what every container of an application does on a real node: it
// prints lines "<number> <time>", numbered from 1 on by each start of it. The
// zero value prints one each second. A container that is told to stop does so at
// once.
type Prints struct {
	Rate      float64 // lines per second; 0 is 1, less is none
	Length    int     // of a line in bytes, without its end: filled with x; a shorter one is as long as it must be
	Stderr    int     // every so manyth line goes to stderr; 0 is none
	Exit      int     // it ends after so many lines, with status 1; 0 is never
	Well      bool    // it ends with status 0 instead
	Most      int     // it prints no more lines than this, and goes on; 0 is no end
	Gate      string  // a file on the node, below /var, before which it prints nothing; "" is none
	Heartbeat string  // a file on the node, below /var, to which each second adds a line "<pod> <time>"; "" is none
	Load      Load    // what it uses besides
}

// Load is what a container of an application uses on a real node, whatever else
// it does. The zero value is nothing.
type Load struct {
	CPU    float64 // part of one core that it keeps busy
	Memory int     // bytes that it holds
	Disk   int     // bytes that it writes to its own file system at its start, in whole MiB, past the page cache
	Net    int     // bytes that it sends at its start, in datagrams of 1000
	To     string  // address and port to which; nobody has to listen there
}

// args are the program's.
func (l Load) args() []string {
	if l == (Load{}) {
		return nil
	}
	return []string{
		"--cpu=" + strconv.FormatFloat(l.CPU, 'g', -1, 64), "--memory=" + strconv.Itoa(l.Memory),
		"--disk=" + strconv.Itoa(l.Disk), "--net=" + strconv.Itoa(l.Net), "--to=" + l.To,
	}
}

// heartbeats is the volume of the files, and where containers have it. Heartbeat
// and Gate are in the same folder.
const heartbeats = "heartbeats"

// folder is the one of the files; "" where there are none.
func (p Prints) folder() string {
	if file := cmp.Or(p.Heartbeat, p.Gate); file != "" {
		return path.Dir(file)
	}
	return ""
}

// container is one that does it.
func (p Prints) container(name string) corev1.Container {
	if p.Rate == 0 {
		p.Rate = 1
	}
	c := corev1.Container{
		Name: name, Image: AppImage, ImagePullPolicy: corev1.PullNever,
		Args: []string{
			"--rate=" + strconv.FormatFloat(p.Rate, 'g', -1, 64),
			"--length=" + strconv.Itoa(p.Length),
			"--stderr=" + strconv.Itoa(p.Stderr),
			"--exit=" + strconv.Itoa(p.Exit),
			"--well=" + strconv.FormatBool(p.Well),
			"--most=" + strconv.Itoa(p.Most),
		},
	}
	c.Args = append(c.Args, p.Load.args()...)
	if p.Heartbeat != "" {
		c.Args = append(c.Args, "--heartbeat="+path.Join("/", heartbeats, path.Base(p.Heartbeat)))
	}
	if p.Gate != "" {
		c.Args = append(c.Args, "--gate="+path.Join("/", heartbeats, path.Base(p.Gate)))
	}
	if p.folder() != "" {
		c.VolumeMounts = []corev1.VolumeMount{{Name: heartbeats, MountPath: path.Join("/", heartbeats)}}
	}
	return c
}
