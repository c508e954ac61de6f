// Command tasks is a plugin for work that several agents share: projects, their tasks, the context of each task and
// hand-offs from agent to agent.
//
// It does not know who calls: each call names agent and task by ID, from the prompt that started the agent. Everything
// is in the plugin's database (tables in manifests/tasks.yaml). Each change is one transaction that also reads what it
// depends on, so no agent overwrites a change that it has not seen. Records are only added; the latest value of each
// field counts.
package main

import (
	"context"
	"errors"

	"github.com/hako-run/hako/pdk"
	"github.com/hako-run/hako/pdk/abi"
	"github.com/hako-run/hako/pdk/locale"
)

func init() {
	pdk.HandleTool("register_agent", registerAgent)
	pdk.HandleTool("get_agent_profile", getAgentProfile)
	pdk.HandleTool("list_agents", listAgents)
	pdk.HandleTool("create_project", createProject)
	pdk.HandleTool("get_project", getProject)
	pdk.HandleTool("list_projects", listProjects)
	pdk.HandleTool("create_task", createTask)
	pdk.HandleTool("get_task", getTask)
	pdk.HandleTool("list_tasks", listTasks)
	pdk.HandleTool("update_task_status", updateTaskStatus)
	pdk.HandleTool("update_task", updateTask)
	pdk.HandleTool("delete_task", deleteTask)
	pdk.HandleTool("assign_task", assignTask)
	pdk.HandleTool("unassign_task", assignTask)
	pdk.HandleTool("next_task", getNextTask)
	pdk.HandleTool("save_context", saveContext)
	pdk.HandleTool("get_task_context", getTaskContext)
	pdk.HandleTool("create_handoff", createHandoff)
	pdk.HandleTool("accept_handoff", acceptHandoff)
	pdk.HandleTool("withdraw_handoff", withdrawHandoff)
	pdk.HandleTool("decline_handoff", declineHandoff)
	pdk.HandleTool("get_pending_handoffs", getPendingHandoffs)

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

// asWireError is for resources and prompts, whose refusals have no place for a text but the protocol's error.
func asWireError(ctx context.Context, err error) error {
	var refused *locale.Error
	if errors.As(err, &refused) {
		return &abi.Error{Code: abi.CodeNotFound, Message: refused.In(pdk.Locale(ctx))}
	}
	return err
}
