//go:build unix

// Package chaos kills replicas of hako under load, and keeps a ledger of what became of every request.
//
// "make chaos" runs it: three processes over one PostgreSQL database, behind nginx, which sends each request to the
// next one.
package chaos

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

var (
	length  = flag.Duration("chaos.for", 0, "for how long there is load; 0 runs nothing")
	seed    = flag.Uint64("chaos.seed", 0, "what chance begins with; 0 chooses")
	program = flag.String("chaos.hako", "../../bin/hako", "the program")
	calm    = flag.Bool("chaos.calm", false, "kill nobody, and move no clock, to compare with")
	pooler  = flag.Bool("chaos.pooler", false, "put PgBouncer before the database")
	logs    = flag.String("chaos.logs", "",
		"a folder for the replicas' logs, which come into dist/chaos if something is wrong")
)

const replicas = 3

func TestChaos(t *testing.T) {
	if *length == 0 {
		t.Skip("it takes a while: make chaos")
	}
	path, err := filepath.Abs(*program)
	if err != nil {
		t.Fatal(err)
	}
	if *seed == 0 {
		*seed = rand.Uint64()
	}
	t.Logf("seed %d", *seed)
	clocked := ""
	if !*calm {
		clocked = buildWithClock(t)
	}
	w := newWorld(t, cmp.Or(clocked, path), replicas)
	l := &load{world: w, book: new(book), events: map[string]*event{}}
	w.fakes.Slack.UseHTTP(w.proxy+"/slack/main", signingSecret)
	ctx, stop := context.WithTimeout(t.Context(), *length)
	defer stop()
	project := l.project(ctx)
	var work sync.WaitGroup
	for i := range 3 {
		for _, version := range []string{withSessions, withoutSessions} {
			work.Go(func() { l.write(ctx, version, project, fmt.Sprintf("%s-%d", version, i)) })
		}
	}
	for _, version := range []string{withSessions, withoutSessions} {
		work.Go(func() { l.askPeople(ctx, version) })
		work.Go(func() { l.useCredential(ctx, version) })
	}
	work.Go(func() { l.talk(ctx) })
	k := &killer{world: w, chance: rand.New(rand.NewPCG(*seed, 1))}
	if !*calm {
		work.Go(func() { k.run(ctx, *length) })
	}
	c := &clocks{world: w, chance: rand.New(rand.NewPCG(*seed, 2))}
	if clocked != "" {
		work.Go(func() { c.run(ctx) })
	}
	work.Wait()
	for _, r := range w.replicas {
		r.ready()
	}
	l.settle(t.Context())
	if wrong := c.restore(); clocked != "" {
		t.Logf("clocks moved %d times, %d records logged with a wrong one", c.jumps, wrong)
		if wrong == 0 {
			t.Error("no clock has moved")
		}
	}
	found := ledger(t, l, k, project)
	for _, fault := range found {
		t.Error(fault)
	}
	if *logs != "" || t.Failed() {
		w.keepLogs(cmp.Or(*logs, "../../dist/chaos"))
	}
}

// killer ends replicas and starts them again, and the database: after half of the time, and now and then from there on.
type killer struct {
	world           *world
	chance          *rand.Rand
	kills, restarts int
}

func (k *killer) run(ctx context.Context, length time.Duration) {
	half := time.Now().Add(length / 2)
	for ctx.Err() == nil {
		pause(ctx, 2*time.Second+time.Duration(k.chance.Int64N(int64(2*time.Second))))
		if ctx.Err() != nil {
			return
		}
		if time.Now().After(half) && (k.restarts == 0 || k.chance.IntN(6) == 0) {
			k.restarts++
			k.world.database.Kill()
			time.Sleep(300 * time.Millisecond)
			k.world.database.Start(k.world.t)
			continue
		}
		r := k.world.replicas[k.chance.IntN(len(k.world.replicas))]
		r.kill()
		k.kills++
		time.Sleep(time.Duration(k.chance.Int64N(int64(time.Second))))
		r.start()
		r.ready() // so that there are two at any time
	}
}
