package topcmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
)

// onceWithin is how long a single table waits for values that are young: the
// agent looks when it is told that somebody does, and the nodes are asked.
const onceWithin = 7 * time.Second

// top is one call of the command.
type top struct {
	options topOptions
	paths   device.Paths
	out     terminal.Terminal
	looking *looking
	files   *topFiles
	asking  nodeAsking

	from int // the first row on the screen
}

// run shows it until ctx is done or somebody types q.
func (t *top) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer t.asking.work.Wait()
	defer cancel()
	switch {
	case t.options.once || !t.out.Live && !t.options.json:
		return t.single(ctx)
	case t.options.json:
		return t.stream(ctx)
	}
	return t.live(ctx)
}

// step looks at all there is, and has the nodes asked when it is time.
func (t *top) step(ctx context.Context) topTable {
	now := time.Now()
	t.looking.renew(now)
	agent := device.LifeOfAgent(t.paths, now)
	t.files.look(t.options.of == topNodes)
	table := topTable{At: now.UTC(), Of: t.options.of, Agent: agent, Problems: t.files.problems(agent, now), Rows: []topRow{}}
	if info, err := device.OwnName(t.paths); err == nil {
		table.Node = info.NodeName()
	}
	if t.looking.err != nil {
		table.Problems = append(table.Problems, t.looking.err.Error())
	}
	own := t.files.own.value
	if own != nil && own.Node != "" {
		table.Node = own.Node
	}
	switch {
	case t.options.of == topNodes:
		t.asking.learn(own, t.files.cluster.value)
		t.asking.begin(ctx, now)
		table.Rows = append(table.Rows, t.asking.rows(now)...)
		table.Problems = append(table.Problems, t.asking.problems(table.Rows)...)
	case own == nil:
	case t.options.of == topPods:
		rows, hidden := podRows(*own, now, t.options.all)
		table.Rows, table.Hidden = append(table.Rows, rows...), hidden
	default:
		rows, hidden := containerRows(*own, now, t.options.all)
		table.Rows, table.Hidden = append(table.Rows, rows...), hidden
	}
	sortRows(table.Rows, t.options.sort)
	return table
}

// single prints one table.
func (t *top) single(ctx context.Context) error {
	table, err := t.first(ctx)
	if err == nil {
		err = t.print(table)
	}
	if err != nil {
		return err
	}
	return table.nothing()
}

// first is the table when its values are young, or when it is known that they
// will not be.
func (t *top) first(ctx context.Context) (topTable, error) {
	late := time.NewTimer(onceWithin)
	defer late.Stop()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		table := t.step(ctx)
		if t.settled(table) {
			return table, nil
		}
		select {
		case <-tick.C:
		case answer, ok := <-t.asking.answers:
			t.asking.hear(answer, ok)
		case <-late.C:
			return t.step(ctx), nil
		case <-ctx.Done():
			return table, terminal.ExitWith(terminal.ExitUsage, errors.New("interrupted"))
		}
	}
}

// settled reports that waiting brings nothing younger.
func (t *top) settled(table topTable) bool {
	own := t.files.own.value
	if table.Agent.Runs && t.looking.err == nil && (own == nil || own.Stale == "" && table.At.Sub(own.At).Abs() > topOld) {
		return false
	}
	return t.options.of != topNodes || t.asking.kube == nil || t.asking.rounds > 0
}

// stream prints a line of JSON at each of the agent's looks.
func (t *top) stream(ctx context.Context) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	table, err := t.first(ctx)
	if err != nil {
		return nil // interrupted, which is how it ends
	}
	for ; ; table = t.step(ctx) {
		if err := t.print(table); err != nil {
			return err
		}
		for waits := true; waits; {
			select {
			case <-tick.C:
				waits = false
			case answer, ok := <-t.asking.answers:
				t.asking.hear(answer, ok)
			case <-ctx.Done():
				return nil
			}
		}
	}
}

// live draws the table each second, and at each key.
func (t *top) live(ctx context.Context) error {
	board := openKeyboard()
	defer board.end()
	fmt.Fprint(t.out, "\x1b[?1049h\x1b[?25l") // a screen of our own, no cursor
	defer fmt.Fprint(t.out, "\x1b[?25h\x1b[?1049l")
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, syscall.SIGWINCH)
	defer signal.Stop(resized)
	return t.watch(ctx, board.keys, resized)
}

func (t *top) watch(ctx context.Context, keys <-chan rune, resized <-chan os.Signal) error {
	tick := time.NewTicker(terminal.WatchEvery)
	defer tick.Stop()
	for {
		table := t.step(ctx)
		if err := t.draw(table); err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-resized:
		case answer, ok := <-t.asking.answers:
			t.asking.hear(answer, ok)
		case key := <-keys:
			if !t.press(key) {
				return table.nothing()
			}
		case <-ctx.Done():
			return table.nothing()
		}
	}
}

// draw shows the table on the terminal.
func (t *top) draw(table topTable) error {
	width, height := t.out.Size()
	var b strings.Builder
	b.WriteString("\x1b[H")
	for _, line := range table.lines(t.options, width, height, t.out.Colour, &t.from) {
		b.WriteString(line + "\x1b[K\n")
	}
	b.WriteString("\x1b[J")
	if _, err := fmt.Fprint(t.out, b.String()); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}

// print writes the table as it is, whatever its length.
func (t *top) print(table topTable) error {
	if t.options.json {
		return t.options.out.Encode(t.out, table, "")
	}
	width, _ := t.out.Size()
	none := 0
	for _, line := range table.lines(t.options, width, 0, t.out.Colour, &none) {
		if _, err := fmt.Fprintln(t.out, line); err != nil {
			return fmt.Errorf("write: %w", err)
		}
	}
	return nil
}

// nothing is the error where there was nothing to show.
func (t topTable) nothing() error {
	for _, r := range t.Rows {
		if !r.At.IsZero() {
			return nil
		}
	}
	if len(t.Problems) == 0 {
		return nil // there are no pods
	}
	return terminal.ExitWith(terminal.ExitNotPublished, errors.New("there is nothing to show: "+terminal.Clean(t.Problems[0])))
}
