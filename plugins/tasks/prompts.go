package main

import (
	"cmp"
	"context"
	"strings"

	"github.com/hako-run/hako/pdk/pdksql"
)

// taskStart is the prompt that an agent starts or continues a task with. It says where the agent should not, and what
// comes first.
func taskStart(ctx context.Context, d *document, arguments map[string]string) error {
	t, err := taskDetailByID(ctx, arguments["task_id"])
	if err != nil {
		return err
	}
	a, err := agentByID(ctx, arguments["agent_id"])
	if err != nil {
		return err
	}
	stand, err := onRecord(ctx, t.ID)
	if err != nil {
		return err
	}
	d.say("# Task: %s", "# タスク: %s", t.Title)
	d.heading("Identification", "識別情報")
	if err := d.task(ctx, t); err != nil {
		return err
	}
	d.say("- Agent ID: %s", "- エージェント ID: %s", a.ID)
	d.say("- Agent Name: %s", "- エージェント名: %s", a.Name)
	if a.Role != "" {
		d.say("- Role: %s", "- 役割: %s", a.Role)
	}
	d.heading("Description", "説明")
	d.quote("What is to be done", "作業内容", cmp.Or(t.Description, t.Title))
	d.record(stand)
	d.heading("Instructions", "手順")
	if d.mayWork(t, stand.PendingHandoff, a.ID) {
		d.steps(t, a.ID)
	}
	return nil
}

// mayWork adds what the agent has to do before it can work on the task, and reports whether it can at all.
func (d *document) mayWork(t *taskDetail, h *handoff, agentID string) bool {
	switch {
	case closed(t.Status):
		d.say("- Do not start: the task is %s. If work is left, open it again first: update_task_status(task_id=%q, status=%q, agent_id=%q)",
			"- 開始しないでください。このタスクは %s です。作業が残っている場合は、先に再開してください: update_task_status(task_id=%q, status=%q, agent_id=%q)",
			t.Status, t.ID, next[t.Status][0], agentID)
		return false
	case h != nil && h.open(agentID):
		d.say("- First take the pending hand-off over: accept_handoff(handoff_id=%q, agent_id=%q)",
			"- まず受領待ちのハンドオフを受領する: accept_handoff(handoff_id=%q, agent_id=%q)", h.ID, agentID)
	case h != nil && h.FromAgentID == agentID:
		d.say("- Do not go on: you have handed the task over, and it waits for %s. To go on yourself, take that back first: withdraw_handoff(handoff_id=%q, agent_id=%q)",
			"- 作業を続けないでください。このタスクは自分で引き継ぎを作成済みで、受領待ちです（宛先: %s）。自分で続ける場合は、先に取り消してください: withdraw_handoff(handoff_id=%q, agent_id=%q)",
			d.orAnybody(h.ToAgentID), h.ID, agentID)
		return false
	case h != nil && t.AssigneeID == "":
		d.say("- Do not start: the task is handed over to %s and waits to be accepted. See next_task(agent_id=%q) for another",
			"- 開始しないでください。このタスクは %s に引き継がれ、受領待ちです。next_task(agent_id=%q) で別のタスクを確認してください", h.ToAgentID, agentID)
		return false
	case t.AssigneeID == "":
		d.say("- Claim it first, since it is assigned to nobody: assign_task(task_id=%q, assignee_id=%q, agent_id=%[2]q, version=%[3]d)",
			"- 担当者がいないので、まず担当する: assign_task(task_id=%q, assignee_id=%q, agent_id=%[2]q, version=%[3]d)", t.ID, agentID,
			t.Version)
	case t.AssigneeID != agentID:
		d.say("- Do not start: the task is assigned to %[1]s. Ask that agent to hand it over to %[2]s with create_handoff, or see next_task(agent_id=%[2]q) for another",
			"- 開始しないでください。このタスクの担当は %[1]s です。%[1]s に create_handoff で %[2]s に引き継ぐよう依頼するか、next_task(agent_id=%[2]q) で別のタスクを確認してください",
			t.AssigneeID, agentID)
		return false
	}
	if len(t.WaitsFor) > 0 {
		d.say("- Wait until %s is done: next_task(agent_id=%q) says what to do meanwhile",
			"- %s が完了するまで待つ。その間にできることは next_task(agent_id=%q) で確認できます", waitingIDs(t.WaitsFor), agentID)
	}
	return true
}

func waitingIDs(list []blocker) string {
	ids := make([]string, len(list))
	for i, b := range list {
		ids[i] = b.ID
	}
	return strings.Join(ids, ", ")
}

// steps describes how to work on a task with the tools.
func (d *document) steps(t *taskDetail, agentID string) {
	if t.Status != inProgress {
		d.say("- Before you begin: update_task_status(task_id=%q, status=\"in_progress\", agent_id=%q)",
			"- 作業を始めるとき: update_task_status(task_id=%q, status=\"in_progress\", agent_id=%q)", t.ID, agentID)
	}
	d.say("- While you work, record where it stands: save_context(task_id=%q, progress=\"…\", findings=\"…\", blockers=\"…\", next_steps=\"…\", agent_id=%q)",
		"- 作業中は状況を記録する: save_context(task_id=%q, progress=\"…\", findings=\"…\", blockers=\"…\", next_steps=\"…\", agent_id=%q)",
		t.ID, agentID)
	d.say("- When it is done: update_task_status(task_id=%q, status=\"done\", agent_id=%q)",
		"- 完了したら: update_task_status(task_id=%q, status=\"done\", agent_id=%q)", t.ID, agentID)
	d.say("- To hand it over instead: create_handoff(task_id=%q, from_agent_id=%q, summary=\"…\"); list_agents() shows to whom",
		"- 引き継ぐ場合: create_handoff(task_id=%q, from_agent_id=%q, summary=\"…\")。引き継げる相手は list_agents() で確認できます", t.ID,
		agentID)
}

// maxCandidates limits the agents that a hand-off template names.
const maxCandidates = 20

// handoffTemplate is the prompt that an agent writes a hand-off with.
func handoffTemplate(ctx context.Context, d *document, arguments map[string]string) error {
	t, err := taskDetailByID(ctx, arguments["task_id"])
	if err != nil {
		return err
	}
	from, err := agentByID(ctx, arguments["from_agent_id"])
	if err != nil {
		return err
	}
	handOver := newHandoff{TaskID: t.ID, FromAgentID: from.ID}
	if err := handOver.check(ctx, &t.task); err != nil {
		return err
	}
	d.say("# Hand over: %s", "# ハンドオフの作成: %s", t.Title)
	d.say("\nFill in the call below and make it. Write for somebody who knows nothing of this task.\n",
		"\n次の呼び出しの空欄を埋めて実行してください。このタスクを何も知らない相手に伝わるように書いてください。\n")
	d.say("    create_handoff(\n        task_id=%q,\n        from_agent_id=%q,\n        to_agent_id=\"…\",       // leave it out if any agent may take over\n"+
		"        summary=\"…\",           // what is done, what is left\n        context=\"…\",           // decisions, files, branches, what to know\n"+
		"        recommendations=\"…\")   // how to go on, what to avoid",
		"    create_handoff(\n        task_id=%q,\n        from_agent_id=%q,\n        to_agent_id=\"…\",       // 誰でもよければ省略\n"+
			"        summary=\"…\",           // 終わったこと、残っていること\n        context=\"…\",           // 決定事項、ファイル、ブランチなど知っておくべきこと\n"+
			"        recommendations=\"…\")   // 進め方、避けるべきこと", t.ID, from.ID)
	if t.PendingHandoffID != "" {
		d.say("\nIt takes the place of %s, which is pending.", "\n受領待ちの %s は、これに置き換えられます。", t.PendingHandoffID)
	}
	if err := d.candidates(ctx, from.ID); err != nil {
		return err
	}
	return d.everything(ctx, t)
}

// candidates adds the agents that could take over.
func (d *document) candidates(ctx context.Context, fromAgentID string) error {
	others, err := pdksql.Select[agent](ctx, "SELECT "+agentColumns+" FROM agents WHERE id <> ? ORDER BY seq LIMIT ?",
		fromAgentID, maxCandidates)
	if err != nil || len(others) == 0 {
		return err
	}
	d.heading("Who could take over", "引き継ぎ先の候補")
	for _, a := range others {
		d.say("- %s: %s, %s (%d open tasks)", "- %s: %s、%s（未完了 %d 件）", a.ID, a.Name, a.Role, a.OpenTasks)
	}
	return nil
}

// contextSummary is the prompt that asks for a summary.
func contextSummary(ctx context.Context, d *document, arguments map[string]string) error {
	t, err := taskDetailByID(ctx, arguments["task_id"])
	if err != nil {
		return err
	}
	d.say("# Where it stands: %s", "# コンテキストの要約: %s", t.Title)
	d.say("\nSummarize where this task stands, in ten lines at most: what is done, what was found out, what is in the way, what comes next.",
		"\nこのタスクの現状を 10 行以内で要約してください。終わったこと、分かったこと、障害、次にすることをまとめてください。")
	return d.everything(ctx, t)
}

// everything adds a task and all that is on record about it.
func (d *document) everything(ctx context.Context, t *taskDetail) error {
	stand, err := onRecord(ctx, t.ID)
	if err != nil {
		return err
	}
	d.heading("Task", "タスク")
	if err := d.task(ctx, t); err != nil {
		return err
	}
	d.WriteString("\n")
	d.quote("Description", "説明", t.Description)
	d.record(stand)
	return nil
}
