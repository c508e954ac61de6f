//go:build unix

package chaos

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

// clockVariable names the file that moves a replica's clock; see testdata/clock.
const clockVariable = "CHAOS_CLOCK"

// buildWithClock builds hako with a clock that can be moved. It returns "" where there is none for this platform.
func buildWithClock(t *testing.T) string {
	t.Helper()
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Log("no clock is moved: that takes Linux on amd64")
		return ""
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	overlay := map[string]map[string]string{"Replace": {}}
	for _, name := range []string{"clock_linux_amd64.go", "clock_amd64.s"} {
		overlay["Replace"][filepath.Join(root, "cmd", "hako", name)] = filepath.Join(root, "dev", "chaos",
			"testdata", "clock", name)
	}
	text, err := json.Marshal(overlay)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file, program := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "hako")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", "build", "-overlay", file, "-ldflags", "-s -w", "-o", program, "./cmd/hako")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build hako with a clock of its own: %v: %s", err, out)
	}
	return program
}

// setClock moves the clock of a replica's process by whole seconds, now and when it starts again.
func (r *replica) setClock(ahead time.Duration) {
	r.world.t.Helper()
	// One write of 8 bytes: the process has mapped the file, and never sees half of it.
	text := binary.NativeEndian.AppendUint64(nil, uint64(ahead/time.Second))
	file, err := os.OpenFile(r.clock(), os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = file.WriteAt(text, 0)
	}
	if err != nil {
		r.world.t.Error(err)
		return
	}
	_ = file.Close()
}

// clock is the file that moves the replica's clock.
func (r *replica) clock() string {
	return filepath.Join(r.world.dir, fmt.Sprintf("clock-%d", r.number))
}

// wrong is by how much clocks are wrong: at first each replica's in its turn, later by chance.
var wrong = []time.Duration{0, time.Hour, -time.Hour, 40 * 24 * time.Hour}

// clocks sets the clocks of replicas.
type clocks struct {
	world  *world
	chance *rand.Rand
	jumps  int
}

// run begins with one clock that is right, one that is an hour ahead and one an hour behind, and then moves one or
// another.
func (c *clocks) run(ctx context.Context) {
	for i, r := range c.world.replicas {
		r.setClock(wrong[i])
	}
	for pause(ctx, 5*time.Second); ctx.Err() == nil; pause(ctx, time.Second+time.Duration(c.chance.Int64N(int64(2*time.Second)))) {
		c.world.replicas[c.chance.IntN(len(c.world.replicas))].setClock(wrong[c.chance.IntN(len(wrong))])
		c.jumps++
	}
}

// restore sets all clocks right, and reports how many records the replicas have logged with a clock that was not.
func (c *clocks) restore() (wrong int) {
	for _, r := range c.world.replicas {
		r.setClock(0)
		text, err := os.ReadFile(r.logFile())
		if err != nil {
			c.world.t.Error(err)
		}
		for line := range bytes.Lines(text) {
			var record struct{ Time time.Time }
			if json.Unmarshal(line, &record) == nil && time.Since(record.Time).Abs() > 30*time.Minute {
				wrong++
			}
		}
	}
	return wrong
}
