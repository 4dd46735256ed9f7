//go:build linux

package devcluster

import (
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
	Heartbeat string  // a file on the node, below /var, to which each second adds a line "<pod> <time>"; "" is none
}

// heartbeats is the volume of the file, and where containers have it.
const heartbeats = "heartbeats"

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
		},
	}
	if p.Heartbeat != "" {
		c.Args = append(c.Args, "--heartbeat="+path.Join("/", heartbeats, path.Base(p.Heartbeat)))
		c.VolumeMounts = []corev1.VolumeMount{{Name: heartbeats, MountPath: path.Join("/", heartbeats)}}
	}
	return c
}
