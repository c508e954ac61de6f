package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
)

// entry is an entry of a task's history: what was saved, a hand-off that is over, or a change of the task.
type entry struct {
	At      string   `json:"at"`
	Context *record  `json:"context,omitempty"`
	Handoff *handoff `json:"handoff,omitempty"`
	Change  *change  `json:"change,omitempty"`
}

// texts are texts by agents.
func (e *entry) texts() []*string {
	switch {
	case e.Context != nil:
		return e.Context.texts()
	case e.Handoff != nil:
		return e.Handoff.texts()
	}
	return []*string{&e.Change.Before, &e.Change.After, &e.Change.Reason}
}

// timeline selects the history of the task ?1: each entry as JSON, with its time and what orders entries of one second.
const timeline = `SELECT saved_at AS at, seq, 1 AS kind, json_object('at', saved_at, 'context', json_object('context_id', id,
		'agent_id', agent_id,
		'progress', progress, 'findings', findings, 'blockers', blockers, 'next_steps', next_steps)) AS entry
	FROM contexts WHERE task_id = ?1
	UNION ALL SELECT handoffs.created_at, handoffs.seq, 2, json_object('at', handoffs.created_at, 'handoff', json_object('handoff_id', handoffs.id,
		'task_id', task_id, 'task_title', title, 'from_agent_id', from_agent_id, 'to_agent_id', to_agent_id, 'summary', summary,
		'context', context, 'recommendations', recommendations, 'forced', json(iif(forced, 'true', 'false')), 'state', state,
		'reason', reason, 'created_at', handoffs.created_at, 'accepted_by', accepted_by, 'accepted_at', accepted_at,
		'closed_by', closed_by, 'closed_at', closed_at))
	FROM handoffs JOIN tasks ON tasks.id = task_id WHERE task_id = ?1 AND state <> 'pending'
	UNION ALL SELECT changed_at, seq, 3, json_object('at', changed_at, 'change', json_object('field', field,
		'before', before, 'after', after, 'agent_id', agent_id, 'reason', reason))
	FROM changes WHERE task_id = ?1`

// historyChunk is the number of entries that are read at once, so that even the longest stay below the limit of the
// database's answers.
const historyChunk = 10

// readHistory reads entries, newest first, in the transaction of ctx until the page or the budget is full.
func readHistory(ctx context.Context, in contextArgs, b *budget) (history []entry, e extent, err error) {
	limit, full := cmp.Or(in.Limit, standardPage), false
	for len(history) < limit && !full {
		p := paging{min(historyChunk, limit-len(history)), in.Offset + len(history)}
		texts, part, err := list[string](ctx, p, "entry", "("+timeline+")", "at DESC, kind DESC, seq DESC", in.TaskID)
		if err != nil {
			return nil, e, err
		}
		e = part
		for _, text := range texts {
			var next entry
			if err := json.Unmarshal([]byte(text), &next); err != nil {
				return nil, e, fmt.Errorf("history of %s: %w", in.TaskID, err)
			}
			if full = !b.charge(len(history) == 0, next.texts()...); full {
				break
			}
			history = append(history, next)
		}
		if len(texts) < p.Limit {
			break
		}
	}
	e.end(in.paging, len(history))
	if full {
		e.note(ctx, "%d older entries of the history are left out: offset=%d shows the next",
			"これより古い履歴 %d 件は省略しました。続きは offset=%d で取得できます", e.TotalCount-*e.NextOffset, *e.NextOffset)
	}
	return history, e, nil
}
