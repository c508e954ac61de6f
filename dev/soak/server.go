package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/hako-run/hako/dev/kit/mcpload"
)

// server is a hako that serves in a directory of its own.
type server struct {
	command *exec.Cmd
	dir     string
	base    string
	began   time.Time
	client  *http.Client
	// calls is a client without sessions.
	calls *mcpload.Client
}

const configuration = `
shipped: {enabled: true, mounts: {workspace: ./workspace}}
mock: true
http: {address: "127.0.0.1:0"}
mcp: {limits: {rate: 1000000, sessions: 10000, sessionIdle: 1m}} # so that those who left without a word are gone soon
limits: {rate: 10000000}
log: {level: warn}
`

// start starts the program and waits until it serves. Its cache and state are in a new directory.
func start(ctx context.Context, binary string) (*server, error) {
	dir, err := os.MkdirTemp("", "hako-soak-")
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, "hako.yaml"), []byte(configuration), 0o600); err != nil {
		return nil, err
	}
	binary, err = filepath.Abs(binary)
	if err != nil {
		return nil, err
	}
	s := &server{dir: dir, began: time.Now(), command: exec.Command(binary, "serve", "--log-level", "info")}
	s.command.Dir = dir
	s.command.Env = append(os.Environ(), "XDG_CACHE_HOME="+dir)
	output, err := s.command.StderrPipe()
	if err != nil {
		return nil, err
	}
	if s.command.Stdout = s.command.Stderr; s.command.Start() != nil {
		return nil, errors.New(binary + " does not start")
	}
	if s.base, err = address(bufio.NewScanner(output)); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	go func() {
		for lines := bufio.NewScanner(output); lines.Scan(); {
			fmt.Println("hako:", lines.Text())
		}
	}()
	s.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: workers, MaxConnsPerHost: 4 * workers},
		Timeout: time.Minute}
	s.calls = &mcpload.Client{HTTP: s.client, URL: s.base + "/mcp", Version: mcpload.Sessionless}
	return s, nil
}

var served = regexp.MustCompile(`http://127\.0\.0\.1:\d+`)

// address reads the program's output until it prints the address that it serves.
func address(lines *bufio.Scanner) (string, error) {
	for lines.Scan() {
		if url := served.FindString(lines.Text()); url != "" {
			return url, nil
		}
	}
	return "", errors.New("hako does not say where it serves")
}

func (s *server) stop() error {
	defer os.RemoveAll(s.dir)
	_ = s.command.Process.Signal(os.Interrupt)
	return s.command.Wait()
}

// sample is one measurement of the process.
type sample struct {
	at                                time.Duration
	resident, heap, goroutines, files float64
	calls                             float64
}

// watched are the metrics of a sample.
var watched = map[string]func(*sample) *float64{
	"process_resident_memory_bytes": func(s *sample) *float64 { return &s.resident },
	"go_memstats_heap_inuse_bytes":  func(s *sample) *float64 { return &s.heap },
	"go_goroutines":                 func(s *sample) *float64 { return &s.goroutines },
	"process_open_fds":              func(s *sample) *float64 { return &s.files },
}

// watch takes samples until ctx ends.
func (s *server) watch(ctx context.Context, every time.Duration) []sample {
	var samples []sample
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if one, err := s.sample(ctx); err == nil {
			samples = append(samples, one)
		}
		select {
		case <-ctx.Done():
			return samples
		case <-tick.C:
		}
	}
}

func (s *server) sample(ctx context.Context) (sample, error) {
	one := sample{at: time.Since(s.began)}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.base+"/metrics", nil)
	if err != nil {
		return one, err
	}
	response, err := s.client.Do(request)
	if err != nil {
		return one, err
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), " ")
		number, err := strconv.ParseFloat(value, 64)
		if err != nil {
			continue
		}
		if field := watched[name]; field != nil {
			*field(&one) = number
		} else if strings.HasPrefix(name, "hako_calls_total{") {
			one.calls += number
		}
	}
	return one, lines.Err()
}
