// bin/hako itself, serving in an empty directory, with the weather plugin waiting for consent; and a client of MCP.
import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { copyFile, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'

import { root } from './chromium.mjs'

const hako = process.env.HAKO ?? path.join(root, 'bin/hako')

/** tokens are those that people log in with, by role. */
export const tokens = { viewer: 'hako_viewer-of-the-browser-specs', approver: 'hako_approver-of-the-browser-specs', admin: 'hako_admin-of-the-browser-specs' }

const configuration = `
plugins: [plugins]
shipped: {enabled: false}
index: {plugins: [index.yaml]}
console:
  tokens:
${Object.entries(tokens).map(([role, token]) => `    - {name: ${role}, role: ${role}, hash: "sha256:${createHash('sha256').update(token).digest('hex')}"}`).join('\n')}
`

const rules = `
version: 1
default: allow
rules:
  - {name: "ask <b>clients</b>", action: ask, tools: [get_weather], frontends: [mcp-http], reason: "they may ask for much", approvers: {users: [approver]}}
`

/**
 * startHost serves with the configuration above, or without a configuration file. links are the one-time links that it printed. restart stops it and starts it
 * again at the same place.
 */
export async function startHost({ configured = true } = {}) {
  const cwd = await mkdtemp(path.join(tmpdir(), 'hako-browser-host-'))
  const port = await freePort()
  if (configured) {
    await mkdir(path.join(cwd, 'plugins'))
    await copyFile(path.join(root, 'dist/plugins/weather.wasm'), path.join(cwd, 'plugins/weather.wasm'))
    await writeFile(path.join(cwd, 'hako.yaml'), configuration)
    await writeFile(path.join(cwd, 'hako.policy.yaml'), rules)
  }
  const host = { cwd, url: `http://127.0.0.1:${port}/console/`, mcp: `http://127.0.0.1:${port}/mcp`, links: [] }
  let stopProcess
  const start = async () => { stopProcess = await serve(host, port) }
  await start()
  return Object.assign(host, {
    async restart(meanwhile = async () => {}) {
      await stopProcess()
      await meanwhile()
      await start()
    },
    async stop() {
      await stopProcess()
      await rm(cwd, { recursive: true, force: true })
    },
  })
}

/** freePort is one that a host can have again after a restart: it is below those that connections get. */
export async function freePort() {
  for (;;) {
    const server = createServer()
    const port = 10_000 + Math.floor(Math.random() * 20_000)
    const free = await new Promise(resolve => server.once('error', () => resolve(false)).listen(port, '127.0.0.1', () => resolve(true)))
    if (!free) continue
    await new Promise(resolve => server.close(resolve))
    return port
  }
}

async function serve(host, port) {
  const env = { ...process.env, MOCK_MODE: 'true', HAKO_CACHE: process.env.HAKO_CACHE ?? path.join(tmpdir(), 'hako-browser-cache') }
  const child = spawn(hako, ['serve', '--http', `127.0.0.1:${port}`], { cwd: host.cwd, env, stdio: ['ignore', 'ignore', 'pipe'] })
  let log = ''
  child.stderr.on('data', chunk => { log += chunk })
  const exited = new Promise(resolve => child.once('exit', resolve))
  for (;;) {
    const ready = await fetch(`http://127.0.0.1:${port}/readyz`).catch(() => null)
    if (ready?.ok) break
    if (child.exitCode !== null) throw new Error(`hako did not start:\n${log}`)
    await new Promise(resolve => setTimeout(resolve, 50))
  }
  host.link = execFileSync(hako, ['console', '--http', `127.0.0.1:${port}`], { cwd: host.cwd, env, encoding: 'utf8' }).trim()
  return async () => {
    child.kill('SIGTERM')
    assert.equal(await exited, 0, log)
  }
}

/** call calls a tool over MCP, and resolves to the result. */
export async function call(mcp, name, input) {
  const opened = await send(mcp, {}, { id: 1, method: 'initialize', params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'browser', version: '1' } } })
  const session = { 'Mcp-Session-Id': opened.headers.get('Mcp-Session-Id'), 'MCP-Protocol-Version': '2025-06-18' }
  await opened.text()
  await (await send(mcp, session, { method: 'notifications/initialized' })).text()
  const response = await send(mcp, session, { id: 2, method: 'tools/call', params: { name, arguments: input } })
  const body = await response.text()
  const message = body.startsWith('{') ? body : body.split('\n').filter(line => line.startsWith('data: {')).at(-1).slice(6)
  return JSON.parse(message).result ?? JSON.parse(message)
}

function send(mcp, headers, message) {
  return fetch(mcp, {
    method: 'POST', body: JSON.stringify({ jsonrpc: '2.0', ...message }),
    headers: { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream', ...headers },
  })
}
