package kubeapi

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestANodeThatFindsItsNameInTheLeaseLeadsOnlyAfterARenewal(t *testing.T) {
	for name, fault := range map[string]func(*link){
		"no write gets an answer": func(l *link) { l.deaf = true },
		"nothing is written":      func(l *link) { l.late = 20 * time.Second },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newLeaseServer()
				s.put(statsOf("n1", 25, time.Now()))
				n := &contender{name: "n1", word: &word{}}
				n.c, n.link, _ = seat(t, s, fault)
				n.run(t, n.word.set)
				for range 60 {
					time.Sleep(time.Second)
					n.word.is(t, "without a renewal", "", false)
				}
				n.link.set(n.link.heal)
				time.Sleep(30 * time.Second)
				n.word.is(t, "when it is renewed", "n1", true)
			})
		})
	}
}

func TestOfTwoAgentsWithOneNameTheLaterLeads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, first := leader(t)
		time.Sleep(time.Second)
		second := stands(t, s, "n1")
		time.Sleep(time.Second)
		for range 120 {
			synctest.Wait()
			first.word.is(t, "the first", "n1", false)
			second.word.is(t, "the second", "n1", true)
			time.Sleep(time.Second)
		}
		if err := first.stop(); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		second.word.is(t, "after the first has stopped", "n1", true)
		second.link.set(func() { second.link.cut = true })
		third := stands(t, s, "n2")
		time.Sleep(time.Minute)
		second.word.is(t, "a minute after it was cut off", "", false)
		third.word.is(t, "another node", "n2", true)
	})
}
