package evereport

import (
	"strings"
	"testing"

	"github.com/lf-edge/eve-api/go/info"
	"google.golang.org/protobuf/reflect/protoreflect"
)

type ours interface {
	~uint8 | ~int8
	String() string
}

type theirs interface {
	~int32
	protoreflect.Enum
}

// all are the values that eve-api names, as the compiled message knows them.
func all[M theirs]() []M {
	var list []M
	var zero M
	values := zero.Descriptor().Values()
	for i := range values.Len() {
		list = append(list, M(values.Get(i).Number()))
	}
	return list
}

// covers fails where a value of either side has none on the other.
func covers[T ours, M theirs](t *testing.T, enum table[T, M]) {
	t.Helper()
	for _, m := range all[M]() {
		if got := enum.toEVE(enum.fromEVE(m)); got != m {
			t.Errorf("%v becomes %v and then %v", m, enum.fromEVE(m), got)
		}
	}
	named := 0
	for n := range 128 {
		v := T(n)
		known := !strings.Contains(v.String(), "(")
		if known {
			named++
		}
		switch got := enum.toEVE(v); {
		case known && enum.fromEVE(got) != v:
			t.Errorf("%v becomes %v and then %v", v, got, enum.fromEVE(got))
		case !known && got != 0:
			t.Errorf("the unknown %v becomes %v", v, got)
		}
	}
	if len(enum) != named-1 {
		t.Errorf("%d pairs for %d values", len(enum), named)
	}
	if got := enum.fromEVE(M(1 << 20)); got != 0 {
		t.Errorf("a value that eve-api lacks becomes %v", got)
	}
}

func TestEveryValueOfEveAPIHasOneOfOursAndBack(t *testing.T) {
	covers(t, admissions)
	covers(t, conditions)
	covers(t, vmiPhases)
	covers(t, components)
	covers(t, updates)
	covers(t, healths)
	covers(t, volumeStates)
	covers(t, robustnesses)
	covers(t, claimStates)
	covers(t, replicaStates)
	covers(t, substates)
}

func TestEverySeverityOfEveAPIHasOneOfOursAndBack(t *testing.T) {
	for _, m := range all[info.Severity]() {
		if got := severities.toEVE(severities.fromEVE(m)); got != m {
			t.Errorf("%v becomes %v and then %v", m, severities.fromEVE(m), got)
		}
	}
}

func TestEveryStateOfAPodIsReachedAndReadBack(t *testing.T) {
	for _, m := range all[info.KubePodStatus]() {
		p := podBack(&info.KubeEVEAppPodInfo{Status: m})
		if got := podState(p.Status, p.Reason); got != m {
			t.Errorf("%v becomes %v %q and then %v", m, p.Status, p.Reason, got)
		}
		if m != 0 && p.Status == 0 {
			t.Errorf("%v is read back without a phase", m)
		}
	}
}
