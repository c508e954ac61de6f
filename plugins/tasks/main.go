// Command tasks is a plugin for work that several agents share: projects, their tasks, the context of each task and hand-offs from
// agent to agent.
//
// It knows no caller: who and what is meant comes with each call as an id, from the prompt that started the agent. Everything is in the
// plugin's database (tables in manifests/tasks.yaml). Each change is one transaction that reads what it decides on, so agents that
// work at the same time cannot overwrite what they have not seen.
package main

import (
	"context"
	"errors"

	"github.com/hako-run/hako/pdk"
	"github.com/hako-run/hako/pdk/abi"
)

func init() {
	tool("register_agent", registerAgent)
	tool("get_agent_profile", getAgentProfile)
	tool("list_agents", listAgents)
	tool("create_project", createProject)
	tool("get_project", getProject)
	tool("list_projects", listProjects)
	tool("create_task", createTask)
	tool("get_task", getTask)
	tool("list_tasks", listTasks)
	tool("update_task_status", updateTaskStatus)
	tool("assign_task", assignTask)
	tool("save_context", saveContext)
	tool("get_task_context", getTaskContext)
	tool("create_handoff", createHandoff)
	tool("accept_handoff", acceptHandoff)
	tool("get_pending_handoffs", getPendingHandoffs)

	resource(agents, "agent://{id}", "id", agentByID)
	resource(projects, "project://{id}", "id", projectByID)
	resource(tasks, "task://{id}", "id", taskDetailByID)
	resource(tasks, "context://{taskId}", "taskId", contextByTask)
	resource(tasks, "handoff://{taskId}", "taskId", latestHandoff)

	prompt("task_start", taskStart, map[string]kind{"task_id": tasks, "agent_id": agents})
	prompt("handoff_template", handoffTemplate, map[string]kind{"task_id": tasks, "from_agent_id": agents})
	prompt("context_summary", contextSummary, map[string]kind{"task_id": tasks})
}

func main() {}

// tool registers a handler whose refusals are put in the caller's language.
func tool[In, Out any](name string, handle func(context.Context, In) (Out, error)) {
	pdk.HandleTool(name, func(ctx context.Context, in In) (Out, error) {
		out, err := handle(ctx, in)
		return out, translated(ctx, err)
	})
}

// translated puts a refusal in the caller's language.
func translated(ctx context.Context, err error) error {
	var refused refusal
	if errors.As(err, &refused) {
		return errors.New(refused.in(languageOf(ctx)))
	}
	return err
}

// asWireError is translated for resources and prompts, whose failures have no place for a text but the protocol's error.
func asWireError(ctx context.Context, err error) error {
	var refused refusal
	if errors.As(err, &refused) {
		return &abi.Error{Code: abi.CodeNotFound, Message: refused.in(languageOf(ctx))}
	}
	return err
}
