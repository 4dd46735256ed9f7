package console

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zedkube/zedkube/types"
)

// Sentences of the rows, for the app that asks alone or first.
const (
	isOpen    = ""
	nobody    = "no row"
	edge      = "edgeview has a console open; there is one per node"
	foreign   = "someone else has written the console file, and its port is in use"
	elsewhere = "its virtual machine does not run on this node"
)

func TestWhatTheConsoleFileShouldBe(t *testing.T) {
	for name, row := range map[string]struct {
		given facts
		want  step
		why   string // of the app that asks; isOpen, or nobody where no row is published
	}{
		"a console that is wanted of a machine that runs here is opened":  {given(), write, opening},
		"an absence of less than two seconds is waited out":               {given(absentFor(gap - 1)), leave, opening},
		"nothing is written before all applications are known":            {given(unsynced), leave, opening},
		"a container has no console":                                      {given(container), leave, "it is not a virtual machine"},
		"an app that wants no console has none":                           {given(off), leave, nobody},
		"a machine on another node is its own node's to show":             {given(away), leave, elsewhere},
		"a machine that starts has no console yet":                        {given(starts), leave, "its virtual machine has not started"},
		"an app that is switched off has no console":                      {given(starts, inactive), leave, "it is switched off"},
		"an app that is being switched off has its console to the end":    {given(inactive, fileOf(own), serving), leave, isOpen},
		"a machine without a pod has no console":                          {given(starts, is(types.AppKubeNotInCluster)), leave, "its virtual machine has not started"},
		"a machine whose name is not known has no console":                {given(nameless), leave, "the name of its virtual machine is not known yet"},
		"a display beyond the ports has no console":                       {given(portOf(5900 + 1<<16)), leave, "its configuration has no port for a console"},
		"a machine that nobody has looked for has no console":             {given(is(types.AppKubeUnknown)), leave, "where its virtual machine runs is not known yet"},
		"a machine lost from view has no console":                         {given(is(types.AppKubeAPIUnreachable)), leave, "the state of the cluster is unknown, and so is where its virtual machine runs"},
		"the right file stays, its port served":                           {given(fileOf(own), serving), leave, isOpen},
		"the right file stays while its port is not known":                {given(fileOf(own), unknowable), leave, isOpen},
		"the right file stays while its port is awaited":                  {given(fileOf(own), quietFor(rewriteAfter-1)), leave, unopened},
		"an open console is open between two clients":                     {given(fileOf(own), wasOpen, quietFor(idleBetween-1)), leave, isOpen},
		"a console whose port has closed is not open":                     {given(fileOf(own), wasOpen, quietFor(idleBetween)), leave, unopened},
		"a file that nobody obeys is taken away to be written anew":       {given(fileOf(own), quietFor(rewriteAfter)), remove, unopened},
		"the second time that takes twice as long":                        {given(fileOf(own), quietFor(2*rewriteAfter-1), rewrittenFor(1)), leave, unopened},
		"what is written anew is told once":                               {given(absentFor(0), rewrittenFor(1)), leave, unopened},
		"but never for ever":                                              {given(fileOf(own), quietFor(rewriteAfter<<maxRewrites), rewrittenFor(99)), remove, unopened},
		"the file of a machine that was replaced goes":                    {given(fileOf(older), serving), remove, opening},
		"the file with an old port goes":                                  {given(fileOf(oldPort), serving), remove, opening},
		"the file goes with the wish":                                     {given(fileOf(own), serving, off), remove, nobody},
		"the file goes with the machine":                                  {given(fileOf(own), serving, away), remove, elsewhere},
		"the file goes when the machine stops":                            {given(fileOf(own), serving, starts), remove, "its virtual machine has not started"},
		"the file goes when the cluster has been out of view for long":    {given(fileOf(own), serving, is(types.AppKubeAPIUnreachable)), remove, "the state of the cluster is unknown, and so is where its virtual machine runs"},
		"the file stays until it is known where the machine runs":         {given(fileOf(own), serving, is(types.AppKubeUnknown)), leave, "where its virtual machine runs is not known yet"},
		"the file goes with the app's configuration":                      {given(fileOf(own), serving, published, deleted), remove, nobody},
		"no file goes before all applications are known":                  {given(fileOf(own), serving, published, deleted, unsynced), leave, nobody},
		"edgeview's session is left alone":                                {given(fileOf(edgeviews), lives, serving), leave, edge},
		"edgeview's session of a wanted console is left alone":            {given(fileOf(edgeviewsOfOwn), lives, serving), leave, edge},
		"edgeview has time to open its port":                              {given(fileOf(edgeviews), lives, quietFor(starting-1)), leave, edge},
		"an edgeview whose port nobody knows is left alone":               {given(fileOf(edgeviews), lives, unknowable), leave, edge},
		"what an edgeview leaves that opens no port goes":                 {given(fileOf(edgeviews), lives, quietFor(starting)), remove, opening},
		"what a dead edgeview leaves goes though its port is served":      {given(fileOf(edgeviews), serving), remove, opening},
		"what a dead edgeview leaves is in nobody's way without a wish":   {given(fileOf(edgeviews), serving, off), leave, nobody},
		"a file without sense goes":                                       {given(nonsense), remove, opening},
		"a file without sense may be one that is being written":           {given(nonsense, seenFor(halfWritten-1)), leave, opening},
		"a file without sense is in nobody's way without a wish":          {given(nonsense, off), leave, nobody},
		"a foreign file whose port is served is left alone":               {given(fileOf(stranger), serving), leave, foreign},
		"a foreign file whose port was served just now is left alone":     {given(fileOf(stranger), quietFor(idleBetween-1)), leave, foreign},
		"a foreign file that nobody uses goes":                            {given(fileOf(stranger), quietFor(idleBetween)), remove, opening},
		"a foreign file that nobody uses is in nobody's way without wish": {given(fileOf(stranger), quietFor(idleBetween), off), leave, nobody},
		"a file without an app is foreign":                                {given(fileOf(appless), serving), leave, foreign},
		"what is no file is left alone":                                   {given(inTheWay), leave, "the console file cannot be used: a directory is in its place"},
	} {
		t.Run(name, func(t *testing.T) {
			a := decide(row.given)
			if a.file != row.want {
				t.Errorf("it does %d to the file, want %d", a.file, row.want)
			}
			got, ok := a.publish[first]
			switch {
			case !ok && row.why != nobody, ok && row.why == nobody:
				t.Errorf("a row is published: %v", ok)
			case ok && (got.Why != row.why || got.Open != (row.why == isOpen)):
				t.Errorf("open: %v, %q, want %q", got.Open, got.Why, row.why)
			}
			if a.file == remove && a.because == "" {
				t.Error("it does not say why")
			}
			if row.why != nobody && (a.again <= 0 || a.again > period) {
				t.Errorf("it looks again in %s", a.again)
			}
		})
	}
}

func TestOneConsoleForEachNode(t *testing.T) {
	for name, row := range map[string]struct {
		given facts
		whose string
		want  map[string]string
	}{
		"who asked first is first": {
			two(askedAt(second, -time.Minute)), second,
			map[string]string{first: "the console of Scale is open; there is one per node", second: opening},
		},
		"of those who asked at once it is the one with the lower UUID": {
			two(), first,
			map[string]string{first: opening, second: "the console of Label_Printer is open; there is one per node"},
		},
		"the one that is open stays open": {
			two(fileOf(seconds), serving), second,
			map[string]string{first: "the console of Scale is open; there is one per node", second: isOpen},
		},
		"the one that was open stays the one after its machine was replaced": {
			two(fileOf(secondsOlder), serving), second,
			map[string]string{first: "the console of Scale is open; there is one per node", second: opening},
		},
		"who cannot be shown takes nobody's place": {
			two(away), second, map[string]string{first: elsewhere, second: opening},
		},
		"edgeview's session is before all": {
			two(fileOf(edgeviews), lives, serving), first, map[string]string{first: edge, second: edge},
		},
		"an app without a name is called by its UUID": {
			two(anonymous), first, map[string]string{first: opening, second: "the console of " + first + " is open; there is one per node"},
		},
		"a file whose machine nobody has looked for yet keeps its place": {
			two(fileOf(own), serving, is(types.AppKubeUnknown)), second, map[string]string{
				first: "where its virtual machine runs is not known yet", second: "the console of Label_Printer is open; there is one per node",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := decide(row.given)
			if a.config.AppUUID != row.whose {
				t.Errorf("it is for %q", a.config.AppUUID)
			}
			got := map[string]string{}
			for key, r := range a.publish {
				if got[key] = r.Why; r.Open != (r.Why == isOpen) {
					t.Errorf("%s is open: %v, %q", key, r.Open, r.Why)
				}
			}
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Error("want -, got +\n" + diff)
			}
		})
	}
}

func TestARowStaysUntilItsFileIsGone(t *testing.T) {
	for name, row := range map[string]struct {
		given facts
		want  []string
	}{
		"while the file stands it proves whose it is": {given(fileOf(own), serving, published, deleted), nil},
		"then it goes":                             {given(published, deleted), []string{first}},
		"it goes with the wish":                    {given(published, off), []string{first}},
		"edgeview's file for the app is no reason": {given(fileOf(edgeviewsOfOwn), published, off), []string{first}},
		"none goes before all apps are known":      {given(published, deleted, unsynced), nil},
	} {
		if got := decide(row.given).unpublish; !slices.Equal(got, row.want) {
			t.Errorf("%s: %v go", name, got)
		}
	}
}

func TestTheTimeOfARowIsThatOfItsBeginning(t *testing.T) {
	f := given(fileOf(own), serving, published)
	if got := decide(f).publish[first].Since; !got.Equal(f.now) {
		t.Errorf("it has changed, and began %s", got)
	}
	f = given(fileOf(own), serving, wasOpen)
	if got, want := decide(f).publish[first].Since, f.rows[first].Since; !got.Equal(want) {
		t.Errorf("it is as before, and began %s, not %s", got, want)
	}
}

func TestTheOlderPlaceFollowsInItsOldForm(t *testing.T) {
	const text = "VMINAME:label-printer-9f27b-4q8zt2\nVNCPORT:5907\n"
	for name, row := range map[string]struct {
		given facts
		want  oldStep
	}{
		"it is written with the file": {
			given(fileOf(own), serving, oldPlace("", oldGap)), oldStep{do: write, text: text},
		},
		"it is absent for longer than its reader sleeps": {given(fileOf(own), serving, oldPlace("", oldGap-1)), oldStep{}},
		"it stays with the file":                         {given(fileOf(own), serving, oldPlace(text, 0)), oldStep{}},
		"another one goes":                               {given(fileOf(own), serving, oldPlace("VMINAME:x\n", 0)), oldStep{do: remove}},
		"it goes with the file":                          {given(oldPlace(text, 0)), oldStep{do: remove}},
		"it is not there for edgeview":                   {given(fileOf(edgeviews), lives, serving, oldPlace(text, 0)), oldStep{do: remove}},
		"it stays as long as nothing is known":           {given(oldPlace(text, 0), unsynced), oldStep{}},
		"what is no file is left alone":                  {given(fileOf(own), serving, blockedOld), oldStep{}},
		"kube-init does not read it":                     {given(fileOf(own), serving, oldPlace("", oldGap), hasKubeInit), oldStep{}},
		"it goes when kube-init comes":                   {given(fileOf(own), serving, oldPlace(text, 0), hasKubeInit), oldStep{do: remove}},
	} {
		if diff := cmp.Diff(row.want, decide(row.given).old, cmp.AllowUnexported(oldStep{})); diff != "" {
			t.Errorf("%s: want -, got +\n%s", name, diff)
		}
	}
}

func TestSentencesAreForPeople(t *testing.T) {
	for _, f := range []facts{given(), two(), given(away), given(fileOf(edgeviews), lives), given(inTheWay)} {
		for _, row := range decide(f).publish {
			if !row.Open && (row.Why == "" || strings.HasSuffix(row.Why, ".")) {
				t.Errorf("%q", row.Why)
			}
		}
	}
}
