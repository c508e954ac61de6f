// An upstream MCP server (2025-11-25, standard input and output) with tools that ask whoever calls them: one for a form, one for a page.
import { createInterface } from 'node:readline'

const form = {
  type: 'object', required: ['name', 'day', 'agree'],
  properties: {
    name: { type: 'string', title: 'Your name', description: 'As it stands on the door.', default: 'Ken' },
    day: { type: 'string', title: 'Day', format: 'date' },
    room: { type: 'string', title: 'Room', oneOf: [{ const: 'n', title: 'North' }, { const: 's', title: 'South' }], default: 's' },
    extras: { type: 'array', title: 'Extras', items: { type: 'string', enum: ['tea', 'screen', 'board'] }, default: ['tea'] },
    guests: { type: 'integer', title: 'Guests', minimum: 1 },
    notes: { type: 'string', title: 'Notes', maxLength: 500 },
    agree: { type: 'boolean', title: 'The rules of the house are known' },
  },
}
const questions = {
  book_room: { message: 'Which room is it to be?', requestedSchema: form },
  sign_in: { mode: 'url', message: 'Sign in first.', url: 'https://rooms.example/sign-in?x=1', elicitationId: '1' },
}
const tools = Object.keys(questions).map(name => ({ name, description: name, inputSchema: { type: 'object' }, annotations: { readOnlyHint: true } }))

const waiting = new Map() // calls, by the question that they wait for
const send = message => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
const answers = {
  initialize: () => ({ protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'rooms', version: '1' } }),
  'tools/list': () => ({ tools }),
  ping: () => ({}),
}

createInterface({ input: process.stdin }).on('line', line => {
  const { id, method, params, result } = JSON.parse(line)
  if (method === 'tools/call') {
    waiting.set(`q-${id}`, id)
    send({ id: `q-${id}`, method: 'elicitation/create', params: questions[params.name] })
  } else if (answers[method]) {
    send({ id, result: answers[method]() })
  } else if (method && id !== undefined) {
    send({ id, error: { code: -32601, message: 'unknown' } })
  } else if (waiting.has(id)) {
    const text = `The server got ${JSON.stringify(result)}`
    send({ id: waiting.get(id), result: { content: [{ type: 'text', text }] } })
    waiting.delete(id)
  }
})
