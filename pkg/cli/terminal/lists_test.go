package terminal

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

type listed struct {
	Name  string
	Tags  []string
	Count *int
	Off   bool
}

var listedTable = []Column{{Title: "NAME"}, {Title: "AGE", Keep: 1, Right: true}, {Title: "NOTE", Keep: 2}}

// ran is what a command that lists three things prints with these arguments.
func ran(width int, args ...string) (string, error) {
	var o Outputs
	var b bytes.Buffer
	two := 2
	swapped := false
	all := []listed{{Name: "b", Tags: []string{"etcd", "worker"}, Count: &two}, {Name: "a", Off: true}, {Name: "c", Tags: []string{"worker"}}}
	ages := map[string]string{"a": "-", "b": "2d3h", "c": "90m"}
	answers := map[string]string{"a": "asking", "b": "12s ago", "c": "5s ago"}
	root := &cobra.Command{Use: "zedkube", SilenceUsage: true, SilenceErrors: true}
	root.PersistentFlags().String("root", "", "")
	c := List[listed](&o, &cobra.Command{Use: "things"}, "thing", Table{Columns: listedTable})
	c.Flags().BoolVar(&swapped, "cluster", false, "")
	o.ColumnsBy(func([]string) []Column {
		if swapped {
			return []Column{{Title: "NAME"}, {Title: "ANSWERED"}}
		}
		return nil
	})
	c.RunE = func(c *cobra.Command, _ []string) error {
		v := View{}
		t := Table{Columns: listedTable}
		if swapped {
			t.Columns = []Column{{Title: "NAME"}, {Title: "ANSWERED"}}
		}
		for _, x := range Selected(&o, all) {
			v.Names = append(v.Names, x.Name)
			row := []Cell{{Text: x.Name}, {Text: ages[x.Name]}, {Text: strings.Repeat(x.Name, 30)}}
			if swapped {
				row = []Cell{{Text: x.Name}, {Text: answers[x.Name]}}
			}
			t.Rows = append(t.Rows, row)
		}
		v.Data = v.Names
		v.Draw = func(s *Screen) {
			s.Width = width
			t.Draw(s)
			s.Put(0, Plain, "see zedkube things, zedkube thingsome")
			s.Foot("end")
		}
		return o.Print(Terminal{Writer: &b, Fd: -1}, v)
	}
	root.AddCommand(c)
	root.SetArgs(append([]string{"things"}, args...))
	err := root.Execute()
	return b.String(), err
}

func TestListsHaveWhatKubectlHas(t *testing.T) {
	const foot, end = "see zedkube things, zedkube thingsome\n", "end\n"
	note := func(x string) string { return strings.Repeat(x, 30) }
	for args, want := range map[string]string{
		"":                           "NAME   AGE  NOTE\nb     2d3h  " + note("b") + "\na        -  " + note("a") + "\nc      90m  " + note("c") + "\n" + foot + end,
		"--no-headers":               "b     2d3h  " + note("b") + "\na        -  " + note("a") + "\nc      90m  " + note("c") + "\n" + foot,
		"--sort-by=age -l off=false": "NAME   AGE  NOTE\nc      90m  " + note("c") + "\nb     2d3h  " + note("b") + "\n" + foot + end,
		"--sort-by=age --no-headers": "c      90m  " + note("c") + "\nb     2d3h  " + note("b") + "\na        -  " + note("a") + "\n" + foot,
		"--cluster --sort-by=answered --no-headers": "c     5s ago\nb     12s ago\na     asking\n" + foot,
		"-o name":                         "thing/b\nthing/a\nthing/c\n",
		"-o name -l tags=worker":          "thing/b\nthing/c\n",
		"-l tags!=etcd,off!=true -o name": "thing/c\n",
		"-l count=2 -o name":              "thing/b\n",
		"-l count= -o name":               "thing/a\nthing/c\n",
		"-l name==A -o json":              "{\n  \"APIVersion\": \"zedkube/v1\",\n  \"Kind\": \"Things\",\n  \"Items\": [\n    \"a\"\n  ]\n}\n",
	} {
		got, err := ran(80, strings.Fields(args)...)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v, want -, got +:\n%s", args, err, diff)
		}
	}
	if got, _ := ran(32); !strings.Contains(got, "NAME  NOTE\n") || !strings.Contains(got, "\nnot shown: AGE (-o wide)\n") {
		t.Errorf("with little room:\n%s", got)
	}
	if got, _ := ran(32, "-o", "wide"); !strings.Contains(got, "2d3h  "+note("b")) || strings.Contains(got, "not shown") {
		t.Errorf("wide:\n%s", got)
	}
	if got, _ := ran(80, "--root", "/a b"); !strings.Contains(got, "see zedkube --root '/a b' things, zedkube thingsome\n") {
		t.Errorf("with --root:\n%s", got)
	}
}

func TestWhereKubectlIsIsSaidOnce(t *testing.T) {
	remedy := func(s *Screen) {
		s.Put(2, Plain, "-> kubectl -n eve-kube-app edit pdb cam, or run a second replica")
		s.Field("do", Plain, "kubectl apply -f deploy/rbac.yaml")
	}
	for name, c := range map[string]struct {
		draw func(*Screen)
		want int
	}{
		"remedies":  {remedy, 1},
		"no remedy": {func(s *Screen) { s.Put(0, Plain, "cordoned by field manager kubectl; as kubectl shows it") }, 0},
	} {
		var b bytes.Buffer
		if err := (&Outputs{}).Print(Terminal{Writer: &b, Fd: -1}, View{Draw: c.draw}); err != nil || strings.Count(b.String(), InKube) != c.want {
			t.Errorf("%s, %v:\n%s", name, err, b.String())
		}
	}
	for text, want := range map[string]int{"if it is off for good: kubectl delete node n1": 1, `kubectl is in "eve enter kube": kubectl get nodes`: 1, "no kubectl": 0} {
		if got := Complaint(errors.New(text)); strings.Count(got, InKube) != want {
			t.Errorf("%q", got)
		}
	}
}

func TestListsSayWhatTheyDoNotHave(t *testing.T) {
	for args, want := range map[string]string{
		"--sort-by=.metadata.name":     `--sort-by ".metadata.name": want one of NAME, AGE, NOTE`,
		"--sort-by=ANSWERED":           `--sort-by "ANSWERED": want one of NAME, AGE, NOTE`,
		"--sort-by=AGE --cluster":      `--sort-by "AGE": want one of NAME, ANSWERED`,
		"--sort-by=NAME -o json":       "--sort-by is for tables; other forms keep their order",
		"-l node-role.kubernetes.io/x": `-l "node-role.kubernetes.io/x": want FIELD=VALUE or FIELD!=VALUE, the field one of Name, Tags, Count, Off`,
		"-o custom-columns=A:.b":       `output "custom-columns=A:.b": want table, wide, name, json, yaml or jsonpath=EXPR`,
	} {
		if _, err := ran(80, strings.Fields(args)...); ExitCode(err) != ExitUsage || err.Error() != want {
			t.Errorf("%s: %v", args, err)
		}
	}
}

func TestEveryLiveScreenScrollsAndQuits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		keys := make(chan rune)
		ended := make(chan error, 1)
		looks := 0
		long := func(context.Context) View {
			looks++
			return View{Err: ExitWith(ExitFound, errNoReader), Draw: func(s *Screen) {
				for i := range 40 {
					s.Put(0, Plain, "line "+strings.Repeat("i", i))
				}
			}}
		}
		go func() {
			ended <- (&Outputs{Watch: true}).Follow(t.Context(), Terminal{Writer: &b, Fd: -1, Live: true, Typed: keys}, Watch{Look: long, Every: time.Hour})
		}()
		for _, step := range []struct {
			key  rune
			says string
		}{{'x', "lines 1 to 22 of 40; q quits"}, {'j', "lines 2 to 23 of 40"}, {' ', "lines 14 to 35 of 40"}, {' ', "lines 19 to 40 of 40"}, {'k', "lines 18 to 39 of 40"}, {'b', "lines 6 to 27 of 40"}, {'g', "lines 1 to 22 of 40"}} {
			keys <- step.key
			synctest.Wait()
			screens := strings.Split(b.String(), "\x1b[J")
			if got := screens[len(screens)-2]; !strings.Contains(got, step.says) || strings.Count(got, "\n") != usualHeight-1 {
				t.Errorf("after %q:\n%s", step.key, got)
			}
		}
		if looks != 2 {
			t.Errorf("to scroll, it looked %d times", looks)
		}
		keys <- 'q'
		if err := <-ended; ExitCode(err) != ExitFound {
			t.Errorf("q ends it with %v, not with what was found", err)
		}
	})
}
