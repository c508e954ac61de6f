// The page Policy: rules in force, who may call what, why, and a change that is tried.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'

import { answers, session } from './answers.mjs'
import { accessible, clean, narrow, shoot, startChromium, visit } from './chromium.mjs'
import { startFake } from './fake.mjs'

let chromium, host
before(async () => {
  chromium = await startChromium()
  host = await startFake(answers(session()))
})
after(async () => {
  await chromium.close()
  await host.stop()
})

test('from the table to the reason', async () => {
  const page = await chromium.open(`${host.url}#/policy`)
  await page.locator('.policy tbody tr').nth(3).waitFor()
  await page.getByLabel('Filter rules').fill('scope')
  assert.equal(await page.locator('.policy tbody tr').count(), 1)
  assert.match(await page.locator('.policy tbody').textContent(), /2\. writing needs a scope.*hako\.policy\.yaml:11.*files:write.*deny/)
  await page.getByRole('link', { name: 'Who may call what' }).click()
  await page.getByLabel('Tool or plugin').fill('file_write')
  await page.locator('.matrix tbody tr').nth(1).waitFor({ state: 'detached' })
  await page.getByText('14 more callers match').waitFor()
  await page.getByLabel('Caller, group or token').fill('ken')
  await page.locator('.matrix thead th').nth(2).waitFor({ state: 'detached' })
  await page.locator('.matrix .cell').click()
  await page.getByText('The token lacks').waitFor()
  assert.deepEqual(host.posted.at(-1).body, { tool: 'file_write', caller: { user: 'ken@example.com', email: '', frontend: 'mcp-http', tenant: '', token: '', groups: [], scopes: [] } })
  await page.getByLabel('Scopes of the token').fill('files:write, files:read')
  await page.getByRole('button', { name: 'Explain' }).click()
  await page.getByText('It depends on the arguments').waitFor()
  assert.deepEqual(host.posted.at(-1).body.caller.scopes, ['files:write', 'files:read'])
  await page.getByLabel('Arguments (JSON)').fill('{')
  await page.getByRole('button', { name: 'Explain' }).click()
  await page.getByText('not valid JSON').waitFor()
  await clean(page)
})

test('a change is checked and tried', async () => {
  for (const [size, language, theme] of [['desktop', 'en', 'light'], ['phone', 'ja', 'dark']]) {
    const page = await chromium.open(`${host.url}#/policy/try`, { size, language, theme })
    const editor = page.locator('.editor')
    await page.waitForFunction(() => document.querySelector('.editor')?.value.startsWith('version: 1'))
    await page.locator('form .primary').click()
    await page.locator('.result tbody tr').nth(1).waitFor()
    const result = await page.locator('.result').textContent()
    for (const wanted of ['62', '32', '1,190', 'file_write', '4711', 'audit.fields', 'hako serve']) assert.ok(result.includes(wanted), `${wanted} in ${result}`)
    const kind = `${size}-${language}-${theme}`
    await narrow(page, `a trial, ${kind}`)
    await accessible(page, `a trial, ${kind}`)
    await shoot(page, `console-policy-trial-${kind}`)
    await editor.fill('x: 1\nrules: [{action: forbid}]')
    await page.locator('form .primary').click()
    await page.locator('.result .lines button').click()
    assert.equal(await page.evaluate(() => document.activeElement.value.slice(document.activeElement.selectionStart, document.activeElement.selectionEnd)), 'rules: [{action: forbid}]')
    await shoot(page, `console-policy-invalid-${kind}`)
    await visit(page, 'policy/explain?tool=file_write&user=ken')
    await page.locator('.result .lines').waitFor()
    await shoot(page, `console-policy-why-${kind}`)
    await clean(page)
  }
})

test('a viewer sees the policy and cannot try another', async () => {
  const viewers = await startFake(answers(session('viewer')))
  const page = await chromium.open(`${viewers.url}#/policy/try`)
  await page.getByText('This needs the role admin').waitFor()
  assert.equal(await page.locator('.editor').count(), 0)
  await clean(page)
  await viewers.stop()
})
