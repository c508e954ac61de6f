// bin/hako as a server, and clients of the TypeScript SDK.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'

import { Client } from '@modelcontextprotocol/client'

const root = path.resolve(import.meta.dirname, '../..')

/** hako is the program. env is the environment of all programs that the tests start. */
export const hako = process.env.HAKO ?? path.join(root, 'bin/hako')
export const env = { ...process.env, MOCK_MODE: 'true', MCP_INSPECTOR_SECRET_STORE: 'memory' }

/** modes are the ways in which clients choose a protocol version. */
export const modes = { legacy: 'legacy', modern: { pin: '2026-07-28' } }

/**
 * serve starts bin/hako on a free port in a directory with these files, or those that a function makes for the port. It
 * returns its URL and how to stop it.
 */
export async function serve(args = [], files = {}) {
  const cwd = await mkdtemp(path.join(tmpdir(), 'hako-clients-'))
  const port = 20000 + Math.floor(Math.random() * 12000)
  if (typeof files === 'function') files = await files(port)
  for (const [name, text] of Object.entries(files)) await writeFile(path.join(cwd, name), text)
  const child = spawn(hako, ['serve', '--http', `127.0.0.1:${port}`, ...args], { cwd, env, stdio: ['ignore', 'ignore', 'pipe'] })
  let log = ''
  child.stderr.on('data', chunk => { log += chunk })
  const base = `http://127.0.0.1:${port}`
  for (;;) {
    try {
      if ((await fetch(`${base}/readyz`)).ok) break
    } catch {}
    if (child.exitCode !== null) throw new Error(`hako did not start:\n${log}`)
    await new Promise(resolve => setTimeout(resolve, 50))
  }
  return {
    cwd,
    url: `${base}/mcp`,
    async stop() {
      const exited = new Promise(resolve => child.once('exit', resolve))
      child.kill('SIGTERM')
      assert.equal(await exited, 0, log)
      await rm(cwd, { recursive: true })
    },
  }
}

/** connect opens a session of a client in a mode. */
export async function connect(transport, mode, options = {}) {
  const client = new Client({ name: 'clients', version: '1.0.0' }, { versionNegotiation: { mode: modes[mode] }, ...options })
  await client.connect(transport)
  return client
}

/** account keeps what an OAuth client of the SDK has to keep. People are led back to redirectUrl. */
export function account(redirectUrl) {
  const kept = {}
  return {
    kept,
    redirectUrl,
    clientMetadata: { client_name: 'The TypeScript SDK', redirect_uris: ['http://127.0.0.1:3000/callback'], token_endpoint_auth_method: 'none' },
    state: () => 'a-state-of-the-client',
    clientInformation: () => kept.client,
    saveClientInformation: client => { kept.client = client },
    tokens: () => kept.tokens,
    saveTokens: tokens => { kept.tokens = tokens },
    redirectToAuthorization: url => { kept.link = url },
    saveCodeVerifier: verifier => { kept.verifier = verifier },
    codeVerifier: () => kept.verifier,
  }
}
