import { Configuration, DeadApi, ProfilesApi, ResponseError, SourcesApi, StatusApi } from "./client";

declare const process: { argv: string[] };

async function main(basePath: string): Promise<void> {
  const configuration = new Configuration({ basePath });
  const sources = new SourcesApi(configuration), profiles = new ProfilesApi(configuration);
  const source = await sources.addSource({ addSourceRequest: { name: "generated", key: "generated" } });
  const profile = await profiles.addProfile({ addProfileRequest: { text: "/generated" } });
  const body = "<generated/>";
  const published = await sources.publish({ source: source.id, body });
  const way = await sources.trace({ source: source.id, traceRequest: { message: body } });
  const policy = await profiles.showPolicy({ profile: profile.id });
  const nodes = (await new StatusApi(configuration).showStatus()).nodes;
  const letters = await new DeadApi(configuration).listLetters();
  const refused = await profiles.addProfile({ addProfileRequest: { text: "/a[b => 1]" } })
    .catch(async (error: ResponseError) => await error.response.json());
  await profiles.removeProfile({ profile: profile.id });
  console.log(JSON.stringify({
    number: published.number, matched: way.steps.some(step => step.profiles.includes(profile.id)),
    attempts: policy.attemptsMax, states: Object.values(nodes).map(node => node.state),
    silent: letters.silent, code: refused.code,
  }));
}

void main(process.argv[2]);
