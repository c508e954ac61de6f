package main

import (
	"context"
	"encoding/json"

	"github.com/hako-run/hako/pdk"
)

// resource registers a template of resources that hold records of k as JSON, with completion of their ids.
func resource[T any](k kind, template, variable string, read func(context.Context, string) (T, error)) {
	pdk.HandleResourceTemplate(template,
		func(ctx context.Context, uri string, variables map[string]string) ([]pdk.ResourceContents, error) {
			value, err := read(ctx, variables[variable])
			if err != nil {
				return nil, asWireError(ctx, err)
			}
			text, err := json.Marshal(value)
			return []pdk.ResourceContents{{URI: uri, MIMEType: "application/json", Text: string(text)}}, err
		})
	pdk.CompleteResource(template, variable, complete(k))
}

// complete proposes ids of k.
func complete(k kind) pdk.Completer {
	return func(ctx context.Context, value string, _ map[string]string) ([]string, error) {
		return k.startingWith(ctx, value)
	}
}

// changed notifies subscribers that the resources of these URIs have changed. Call it after the commit.
func changed(ctx context.Context, uris ...string) {
	for _, uri := range uris {
		pdk.ResourceUpdated(ctx, uri)
	}
}

// taskChanged announces a task with what is counted by it: its project, the agents that had it and have it, and its
// hand-off where that ended.
func taskChanged(ctx context.Context, states ...*task) {
	first, last := states[0], states[len(states)-1]
	changed(ctx, "task://"+first.ID, "project://"+first.ProjectID)
	if first.PendingHandoffID != last.PendingHandoffID {
		changed(ctx, "handoff://"+first.ID)
	}
	seen := map[string]bool{"": true}
	for _, t := range states {
		if !seen[t.AssigneeID] {
			changed(ctx, "agent://"+t.AssigneeID)
		}
		seen[t.AssigneeID] = true
	}
}
