function is = bdIsLoaded(name)
is = false;
end
