package apps

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/types"
)

// crowd is a cluster of that many applications, of whose pods there are three
// each, on a node that is lost where gone is set.
func crowd(apps int, gone bool) facts {
	s := newScene()
	if gone {
		s.lose()
	}
	f := s.follow().facts
	f.configs, f.sets, f.pods, f.vmis = map[string]types.AppInstanceConfig{}, map[string]types.AppSet{}, nil, nil
	f.fresh.storage.Volumes = nil
	for i := range apps {
		cfg := s.cfg
		cfg.UUIDandVersion.UUID = uuid.NewSHA1(uuid.Nil, fmt.Append(nil, i))
		key := cfg.UUIDandVersion.UUID.String()
		f.configs[key] = cfg
		set := s.set
		set.Name, set.UID, set.AppDomain, set.Claims = cfg.KubeName(), "set-"+key, key+".1.1", []string{"data-" + key}
		f.sets[set.Key()] = set
		f.since["proved/"+set.UID+"/n2"] = 0
		f.fresh.storage.Volumes = append(f.fresh.storage.Volumes, volume(set.Claims[0]))
		for n := range 3 {
			p := launcher(fmt.Sprintf("%sabcd%d", set.Name, n), on("n2"))
			p.Name, p.AppDomain, p.Claims = fmt.Sprintf("%s-%d", p.Name, n), set.AppDomain, set.Claims
			f.pods = append(f.pods, p)
		}
		v := s.vmis[0]
		v.Name, v.AppDomain, v.Owner.Name = set.Name+"abcd0", set.AppDomain, set.Name
		f.vmis = append(f.vmis, v)
	}
	return f
}

// BenchmarkDecide is what one change of one pod costs among 300 applications and
// 900 pods.
func BenchmarkDecide(b *testing.B) {
	for row, gone := range map[string]bool{"all is well": false, "their node is lost": true} {
		f := crowd(300, gone)
		b.Run(row, func(b *testing.B) {
			for b.Loop() {
				decide(f)
			}
		})
	}
}

func TestAllApplicationsOfALostNodeAreTakenInFewTasks(t *testing.T) {
	f := crowd(300, true)
	seen := map[string]bool{}
	f.rest = map[string]pause{"uid-n2": {until: f.uptime + time.Minute}} // it cannot be fenced
	for tasks := 0; tasks < 300/f.most(types.ActFailover); tasks++ {
		for _, t := range decide(f).act.targets {
			seen[t.key] = true
			f.rest[t.key] = pause{until: f.uptime + minPause}
		}
	}
	if len(seen) != 300 {
		t.Errorf("%d of 300 were taken", len(seen))
	}
}
