package doctor

import (
	"fmt"
	"path"
	"strings"
)

const maxNamed = 5 // files in one sentence

func judgeFiles(f filesFacts) Finding {
	if len(f.found) == 0 {
		if f.err != nil {
			return unknown("Not all could be looked at: %v.", f.err)
		}
		return ok("No file lies about that changes what is done, or was forgotten.")
	}
	var texts []string
	for _, l := range f.found[:min(len(f.found), maxNamed)] {
		texts = append(texts, l.path+" "+l.what)
	}
	more := ""
	if n := len(f.found) - maxNamed; n > 0 {
		more = fmt.Sprintf(" %d more.", n)
	}
	return warn(remedyForFiles(f.found[:len(texts)]), "%s", strings.Join(texts, "; ")+"."+more)
}

// remedyForFiles says what ends each of them: a command of their own, or their
// removal.
func remedyForFiles(found []lying) string {
	var ends, litter, acts []string
	for _, l := range found {
		switch {
		case l.undo != "":
			ends = append(ends, "for "+path.Base(path.Dir(l.path))+": "+l.undo)
		case l.does:
			acts = append(acts, l.path)
		default:
			litter = append(litter, l.path)
		}
	}
	if len(acts) > 0 {
		ends = append(ends, "if nobody needs it any more: rm "+strings.Join(acts, " "))
	}
	if len(litter) > 0 {
		ends = append(ends, "if nobody works on it: rm "+strings.Join(litter, " "))
	}
	return strings.Join(ends, "; ")
}

const (
	littleRoom = 10 // percent of bytes or inodes
	noRoom     = 2
)

func judgeDisks(disks []diskFacts) Finding {
	all := ok("There is room.")
	if len(disks) > 0 {
		var texts []string
		for _, d := range disks {
			texts = append(texts, fmt.Sprintf("%s has %s free of %s", d.path, bytesText(d.free), bytesText(d.size)))
		}
		all = ok("%s.", strings.Join(texts, ", "))
	}
	for _, d := range disks {
		all = worse(all, judgeDisk(d))
	}
	return all
}

func judgeDisk(d diskFacts) Finding {
	const remedy = "remove images, volumes or snapshots that nobody needs, or old logs below /persist/newlog"
	free, nodes := percent(d.free, d.size), percent(d.freeNodes, d.inodes)
	switch {
	case d.err != nil:
		return unknown("%s cannot be looked at: %v.", d.path, d.err)
	case free < noRoom:
		return fail(remedy, "%s has %s free of %s.", d.path, bytesText(d.free), bytesText(d.size))
	case nodes < noRoom:
		return fail(remedy, "%s can hold %d more files of %d.", d.path, d.freeNodes, d.inodes)
	case free < littleRoom:
		return warn(remedy, "%s has %s free of %s.", d.path, bytesText(d.free), bytesText(d.size))
	case nodes < littleRoom:
		return warn(remedy, "%s can hold %d more files of %d.", d.path, d.freeNodes, d.inodes)
	}
	return ok("%s has room.", d.path)
}

// percent of a whole that is left; all of what counts nothing.
func percent(left, whole uint64) uint64 {
	if whole == 0 {
		return 100
	}
	return uint64(float64(left) / float64(whole) * 100)
}

func bytesText(n uint64) string {
	switch {
	case n >= 10<<30:
		return fmt.Sprintf("%d GiB", n>>30)
	case n >= 10<<20:
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d kiB", n>>10)
}

const (
	nearLimit = 80 // percent in use
	atLimit   = 97
)

func judgeLimits(limits []limit) Finding {
	all := unknown("The limits cannot be read.")
	for i, l := range limits {
		f := judgeLimit(l)
		if i == 0 {
			all = ok("Nothing is near its limit.")
		}
		all = worse(all, f)
	}
	return all
}

func judgeLimit(l limit) Finding {
	remedy := "who holds them: ls /proc/*/fd"
	if l.toChange != "" {
		remedy = fmt.Sprintf("sysctl -w %s=%d; who holds them: ls -l /proc/*/fd", l.toChange, 2*l.most)
	}
	used := 100 - percent(l.most-min(l.used, l.most), l.most)
	switch {
	case l.most == 0:
		return ok("No limit is known.")
	case used >= atLimit:
		return fail(remedy, "%d of %d %s are in use.", l.used, l.most, l.what)
	case used >= nearLimit:
		return warn(remedy, "%d of %d %s are in use.", l.used, l.most, l.what)
	}
	return ok("%d of %d.", l.used, l.most)
}
