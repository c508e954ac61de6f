// Command soak runs bin/hako under load for a while and looks whether memory, goroutines and open files stay where they
// are.
//
//	go run ./dev/soak -duration 30m -load 0.7 -out bench/soak
//
// It first measures how many calls a second this machine takes, and then sends the given share of that: tool calls of
// both modes of MCP to plugins with HTTP (from recordings), files and databases, calls that fail, and clients that come
// and go. It writes samples.csv, plot.svg and summary.json, and fails if anything grew from the second third of the run
// to the last.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"time"
)

func main() {
	duration := flag.Duration("duration", 30*time.Minute, "how long")
	share := flag.Float64("load", 0.7, "share of what the machine takes")
	out := flag.String("out", "bench/soak", "folder for samples, plot and summary")
	binary := flag.String("hako", "bin/hako", "the program")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *binary, *out, *duration, *share); err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, binary, out string, duration time.Duration, share float64) (err error) {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	s, err := start(ctx, binary)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	capacity, err := s.capacity(ctx, 10*time.Second)
	if err != nil {
		return err
	}
	rate := capacity * share
	fmt.Printf("this machine takes %.0f calls a second; %v at %.0f\n", capacity, duration, rate)
	ctx, cancel := context.WithTimeout(ctx, duration)
	defer cancel()
	sampled := make(chan []sample, 1)
	go func() { sampled <- s.watch(ctx, max(duration/360, time.Second)) }()
	counts := s.load(ctx, rate)
	samples := <-sampled
	r := summarise(samples, counts)
	r.Capacity, r.Rate, r.Duration = capacity, rate, duration.String()
	if err := write(out, samples, r); err != nil {
		return err
	}
	fmt.Print(r)
	return r.verdict()
}

func write(out string, samples []sample, r *report) error {
	summary, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(out, "summary.json"), append(summary, '\n'), 0o644),
		os.WriteFile(filepath.Join(out, "samples.csv"), table(samples), 0o644),
		os.WriteFile(filepath.Join(out, "plot.svg"), plot(samples), 0o644))
}
