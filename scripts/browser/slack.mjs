// hako-dev slack, for the specs of its page.
import { spawn } from 'node:child_process'
import path from 'node:path'

import { root } from './chromium.mjs'

/** startSlack runs hako-dev slack with more arguments and variables, and resolves to the address that it prints. */
export async function startSlack(args = [], env = {}) {
  const child = spawn(path.join(root, 'bin/hako-dev'), ['slack', '--hako', process.env.HAKO ?? path.join(root, 'bin/hako'), '--address', '127.0.0.1:0', ...args],
    { stdio: ['ignore', 'ignore', 'pipe'], env: { ...process.env, ...env } })
  const exited = new Promise(resolve => child.once('exit', resolve))
  const url = await new Promise((resolve, reject) => {
    let log = ''
    child.stderr.on('data', chunk => {
      log += chunk
      const found = log.match(/http:\S+\?token=\w+/)
      if (found) resolve(found[0])
    })
    exited.then(() => reject(new Error(`hako-dev slack ended:\n${log}`)))
  })
  return { url, async stop() { child.kill('SIGTERM'); await exited } }
}
