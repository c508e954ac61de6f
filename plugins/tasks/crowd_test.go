//go:build !wasip1

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/hako-run/hako/pdk/pdktest"
)

// caller calls a tool as one agent. An error is the tool's refusal.
type caller func(tool string, in args) (json.RawMessage, error)

// crowdSize is the number of concurrent agents, rounds the number of changes that each makes to the task.
const crowdSize, rounds = 8, 10

// TestCrowd lets agents work on one task at once, natively.
func TestCrowd(t *testing.T) {
	t.Parallel()
	office(t)
	crowd(t, slices.Repeat([]caller{func(tool string, in args) (json.RawMessage, error) {
		response := pdktest.CallTool(t, tool, in, pdktest.Options{})
		if response.IsError {
			return nil, errors.New(response.Content[0].Text)
		}
		return response.StructuredContent, nil
	}}, crowdSize))
}

// crowd lets the callers, each an agent of its own, work on task_ui at once: they accept one hand-off, save contexts,
// and change the status, each from the version that it has seen. All of it must be there in the end, each thing once.
func crowd(t *testing.T, callers []caller) {
	t.Helper()
	for i := range callers {
		ask[agent](t, callers[i], "register_agent", args{"agent_id": fmt.Sprintf("agt_%d", i), "name": "n"})
	}
	h := ask[createdHandoff](t, callers[0], "create_handoff", args{"task_id": "task_ui", "from_agent_id": "agt_ann",
		"summary": "s"})
	before := ask[taskDetail](t, callers[0], "get_task", args{"task_id": "task_ui"})
	var acceptances, changes atomic.Int64
	var group sync.WaitGroup
	for i, call := range callers {
		group.Go(func() {
			me := worker{call, fmt.Sprintf("agt_%d", i)}
			if me.accepts(t, h.ID) {
				acceptances.Add(1)
			}
			for round := range rounds {
				changes.Add(me.moves(t))
				if _, err := call("save_context", args{"task_id": "task_ui", "progress": fmt.Sprintf("%s, round %d", me.id, round)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	if n := acceptances.Load(); n != 1 {
		t.Errorf("%d agents have accepted the hand-off", n)
	}
	after := ask[taskDetail](t, callers[0], "get_task", args{"task_id": "task_ui"})
	if want := before.Version + 1 + int(changes.Load()); after.Version != want ||
		int(changes.Load()) != len(callers)*rounds {
		t.Errorf("version %d after %d changes and one acceptance, want %d", after.Version, changes.Load(), want)
	}
	checkRecords(t, callers[0], len(callers))
}

// TestHandoffRaces: of everything that ends a hand-off at the same moment one thing does, and the assignee, the state
// and the history tell of that one. Tasks that would wait for each other never do, however they come about.
func TestHandoffRaces(t *testing.T) {
	t.Parallel()
	office(t)
	for round := range 30 {
		id := fmt.Sprintf("task_%d", round)
		result[taskDetail](t, "create_task", args{"project_id": "proj_login", "task_id": id, "title": "t",
			"assignee_id": "agt_ann", "status": inProgress})
		h := result[createdHandoff](t, "create_handoff", args{"task_id": id, "from_agent_id": "agt_ann",
			"to_agent_id": "agt_bob", "summary": "s"})
		ends := []struct {
			tool, state, assignee string
			in                    args
		}{
			{"accept_handoff", accepted, "agt_bob", args{"handoff_id": h.ID, "agent_id": "agt_bob"}},
			{"withdraw_handoff", withdrawn, "agt_ann", args{"handoff_id": h.ID, "agent_id": "agt_ann"}},
			{"decline_handoff", declined, "agt_ann", args{"handoff_id": h.ID, "agent_id": "agt_bob", "reason": "no"}},
		}
		var group sync.WaitGroup
		succeeded := make([]bool, len(ends))
		for i, end := range ends {
			group.Go(func() { succeeded[i] = !call(t, "en", end.tool, end.in).IsError })
		}
		group.Wait()
		got := result[taskContext](t, "get_task_context", args{"task_id": id, "include_history": true})
		task := result[taskDetail](t, "get_task", args{"task_id": id})
		var states []string
		for _, e := range got.History {
			if e.Handoff != nil {
				states = append(states, e.Handoff.State)
			}
		}
		winner := slices.Index(succeeded, true)
		if n := len(slices.DeleteFunc(slices.Clone(succeeded), func(ok bool) bool { return !ok })); n != 1 ||
			len(states) != 1 || states[0] != ends[winner].state || task.AssigneeID != ends[winner].assignee ||
			task.PendingHandoffID != "" {
			t.Fatalf("%v succeeded, the states are %v, the task is %+v", succeeded, states, task.task)
		}
	}
	var group sync.WaitGroup
	for i := range 30 {
		group.Go(func() {
			call(t, "en", "update_task", args{"task_id": fmt.Sprintf("task_%d", i),
				"blocked_by": []string{fmt.Sprintf("task_%d", (i+1)%30), fmt.Sprintf("task_%d", (i+7)%30)}})
		})
	}
	group.Wait()
	for i := range 30 { // each refused change closed a cycle, so the graph has an order
		id := fmt.Sprintf("task_%d", i)
		seen := map[string]bool{}
		var visit func(string)
		visit = func(next string) {
			for _, blocker := range result[taskDetail](t, "get_task", args{"task_id": next}).BlockedBy.ids() {
				if blocker == id {
					t.Fatalf("%s waits for itself", id)
				}
				if !seen[blocker] {
					seen[blocker] = true
					visit(blocker)
				}
			}
		}
		visit(id)
	}
}

func ask[T any](t *testing.T, call caller, tool string, in args) (out T) {
	t.Helper()
	data, err := call(tool, in)
	must(t, err)
	must(t, json.Unmarshal(data, &out))
	return out
}

// worker is one of the crowd.
type worker struct {
	call caller
	id   string
}

// accepts reports whether the agent is the one that gets the hand-off. Others have to be told who was faster.
func (w worker) accepts(t *testing.T, handoffID string) bool {
	_, err := w.call("accept_handoff", args{"handoff_id": handoffID, "agent_id": w.id})
	if err != nil && !strings.Contains(err.Error(), "was accepted by agt_") {
		t.Error(err)
	}
	return err == nil
}

// moves changes the status, from the version that it has seen, until nobody else was faster. It returns how often that
// succeeded.
func (w worker) moves(t *testing.T) int64 {
	for {
		data, err := w.call("get_task", args{"task_id": "task_ui"})
		var seen taskDetail
		if err == nil {
			err = json.Unmarshal(data, &seen)
		}
		if err != nil {
			t.Error(err)
			return 0
		}
		_, err = w.call("update_task_status", args{"task_id": "task_ui", "version": seen.Version,
			"status": map[string]string{inProgress: review, review: inProgress}[seen.Status]})
		if err == nil {
			return 1
		}
		if !strings.Contains(err.Error(), "has changed") {
			t.Error(err)
			return 0
		}
	}
}

// checkRecords holds that everything that was saved is in the history, once.
func checkRecords(t *testing.T, call caller, agents int) {
	t.Helper()
	seen := map[string]int{}
	for next := new(int); next != nil; {
		page := ask[taskContext](t, call, "get_task_context",
			args{"task_id": "task_ui", "include_history": true, "limit": 20, "offset": *next})
		for _, e := range page.History {
			if e.Context != nil {
				seen[*e.Context.Progress]++
			}
		}
		next = page.NextOffset
	}
	for i := range agents {
		for round := range rounds {
			if text := fmt.Sprintf("agt_%d, round %d", i, round); seen[text] != 1 {
				t.Errorf("%q is on record %d times", text, seen[text])
			}
		}
	}
}
