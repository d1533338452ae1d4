(: Tara near San Francisco: Articles with a picture. :)
/nitf/body/body.content/media[@media-type = "image"]
